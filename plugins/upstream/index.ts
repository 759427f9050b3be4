import fp from 'fastify-plugin'
import type { UpstreamWingOptions } from './parts.ts'

export { upstreamLimits } from './limits.ts'
export {
  type ProcessEnvironment, expandVariables, fillPlaces, isOurs, leftAsWritten, variablePattern
} from './links/environment.ts'
export { isLinkToken, linkToken, newBrowserKey, taggedUrl } from './login/starts.ts'
export type { Probe } from './probe.ts'
export type { Upstreams } from './upstreams.ts'
export type { UpstreamWingOptions } from './parts.ts'

/** The servers that are alive, as providers of the gateway. */
export default fp<UpstreamWingOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'upstream-wing', dependencies: ['gateway-wing', 'identity'] })
