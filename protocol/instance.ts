import { randomUUID } from 'node:crypto'

/** Under which member of `_meta` a gateway says in `initialize` which one it is. */
export const instanceKey = 'tool-hub/instance'

/** This process, unlike any other gateway: one that is its own upstream must notice, or its lists would grow without end. */
export const instance = randomUUID()
