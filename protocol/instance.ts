import { randomUUID } from 'node:crypto'

/** The member of `_meta` by which a gateway identifies itself in `initialize`. */
export const instanceKey = 'tool-hub/instance'

/** Identifies this process among gateways, so that one that is configured as its own upstream notices: its lists would grow without end. */
export const instance = randomUUID()

/** The answer to a gateway that is configured as its own upstream. */
export const ownAddress = 'This address is the gateway\'s own: a server cannot be the gateway that it is configured in'
