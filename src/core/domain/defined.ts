type Flat<T> = { [K in keyof T]: T[K] };

/** The type `T` in which each member that may be undefined is optional. */
export type Defined<T extends object> = Flat<
  { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
    [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
  }
>;

/**
 * Returns a copy without the undefined members: an optional member is omitted, never undefined. Members that
 * are null, false, 0 or empty stay.
 */
export function defined<T extends object>(members: T): Defined<T> {
  const present: Record<string, unknown> = {};
  // Pairs of name and value would be an array for each member of each row and response.
  for (const name of Object.keys(members)) {
    const value = members[name as keyof T];
    if (value !== undefined) present[name] = value;
  }
  return present as Defined<T>;
}
