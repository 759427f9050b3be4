import { randomUUID } from 'node:crypto'

/** The member of `_meta` in which a gateway names itself in `initialize`. */
export const instanceKey = 'tool-hub/instance'

/** Identifies this process among gateways: one that is its own upstream must notice, or its lists would grow without end. */
export const instance = randomUUID()
