/** Bounds of the settings. docs/limits.md is generated from them. */
export const settingsLimits = {
  /**
   * `entries`: max entries of the audit log that are in memory, or wait for the database; `size`: max memory of these
   * entries, in bytes; beyond that, the oldest of the actor (a user including the user's keys, or a system key) with
   * the largest share are dropped. `stored`: max entries in a database; beyond that, the oldest are removed. `part`:
   * max size of one `before` or `after`, in characters; beyond that, it is replaced by its id, its name and `truncated:
   * true`.
   */
  audit: { entries: 1_000, part: 32 * 1024, size: 16 * 1024 * 1024, stored: 100_000 },

  /**
   * Time for which the storage may be unavailable, in ms; beyond that, the process is not ready, and a replica refuses
   * credentials (503), since some of them may have been revoked.
   */
  storageAway: 60_000,

  /**
   * Database look-ups of unknown keys, users and passwords, which another replica may just have stored. `perSecond`:
   * max look-ups per second, each for all waiting requests; beyond that, there is no look-up, and the credentials count
   * as unknown. `timeout`: max time of one look-up, in ms; beyond that, the requests are refused (503).
   */
  freshLookUps: { perSecond: 10, timeout: 1_000 },

  /**
   * Changes of the settings by a user who is not an admin, in characters. `each`: the cost of every change; a body, or
   * a stored config of the changed server, larger than `steppedBody` costs its size as well. `burst`: max cost at once,
   * `perSecond`: max cost per second; beyond that, 429. `owners`: max users whose cost is counted at the same time;
   * beyond that, the oldest count is dropped.
   */
  userChanges: { each: 8 * 1024, burst: 2 * 1024 * 1024, perSecond: 64 * 1024, owners: 10_000 },

  /** Max waiting changes of the settings, with a share for each owner; beyond that, 429 or 503. Owners take turns. */
  changes: 1_000,

  /** Max policies, max guards and max quotas; beyond that, adding one is refused. */
  orderedEntries: 500
} as const
