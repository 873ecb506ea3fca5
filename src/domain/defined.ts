type Flat<T> = { [K in keyof T]: T[K] };

/** `T` with each member that may be undefined made an optional one. */
export type Defined<T extends object> = Flat<
  { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
    [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
  }
>;

/**
 * A copy of `members` without the undefined ones: a member that may lack is absent, never undefined.
 * Members that are null, false, 0 or empty stay.
 */
export function defined<T extends object>(members: T): Defined<T> {
  const present: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) if (value !== undefined) present[name] = value;
  return present as Defined<T>;
}
