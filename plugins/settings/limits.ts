/** Bounds of the settings. docs/limits.md is generated from them. */
export const settingsLimits = {
  /**
   * `entries`: max entries of the audit log in memory, or that wait for the database; `size`: max memory of all of
   * them, in bytes; beyond: the oldest of the actor (a user with all of the user's keys, or a system key) that has most
   * are dropped. `stored`: max entries in a database; beyond: the oldest are removed. `part`: max size of one `before`
   * or `after`, in characters; beyond: it is replaced by its id, its name and `truncated: true`.
   */
  audit: { entries: 1_000, part: 32 * 1024, size: 16 * 1024 * 1024, stored: 100_000 },

  /**
   * How long the storage may be away, in ms, until the process is not ready any more, and a replica refuses credentials
   * (503): it cannot know which of them still count.
   */
  storageAway: 60_000,

  /**
   * Look-ups of unknown keys, users and passwords in a database, where another replica may have stored them a moment
   * ago. `perSecond`: max look-ups per second, each for all that wait for it; beyond: they are refused at once.
   * `timeout`: max time of one, in ms; beyond: they are refused.
   */
  freshLookUps: { perSecond: 10, timeout: 1_000 },

  /**
   * Changes of the settings by a user who is not an admin, in characters: each counts as `each`, and more where its
   * body, or the stored config of its server, has more than `steppedBody`. `burst`: max at once, `perSecond`: per
   * second; beyond: 429. `owners`: max users that are counted.
   */
  userChanges: { each: 8 * 1024, burst: 2 * 1024 * 1024, perSecond: 64 * 1024, owners: 10_000 },

  /**
   * Max changes of the settings that wait for those before them, with a share for each owner; beyond: 429 or 503.
   * Owners take turns.
   */
  changes: 1_000,

  /** Max policies, guards, or quotas, of each; beyond: adding one is refused. */
  orderedEntries: 500
} as const
