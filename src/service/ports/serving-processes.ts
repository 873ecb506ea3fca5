/** The processes of a cluster that serve partners. Each of them is registered for as long as it renews its entry. */
export interface ServingProcesses {
  /**
   * Registers this process, or renews its entry.
   * @returns the number of registered processes, this one included
   */
  renew(): Promise<number>;
  /** Removes this process at once. Without this call its entry expires. */
  leave(): Promise<void>;
}
