export type { Fetched } from './fetch.ts'
export { type Outbound, type Reach, causeOf, reachOf } from './outbound.ts'
