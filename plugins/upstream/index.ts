import fp from 'fastify-plugin'
import type { UpstreamWingOptions } from './parts.ts'

export { upstreamLimits } from './limits.ts'
export {
  type ProcessEnvironment, createUnexpandedCheck, expandVariables, isGatewaySecretName, mapVariablePlaces,
  variablePattern
} from './links/environment.ts'
export { isLinkToken, linkToken, newTicket, withBrowserTag } from './login/starts.ts'
export type { ProbeResult } from './probe.ts'
export type { Upstream } from './upstream.ts'
export type { CatalogueReview } from './catalogues/review.ts'
export type { Upstreams } from './upstreams.ts'
export type { UserValues } from './values/values.ts'
export type { UpstreamWingOptions } from './parts.ts'

/** The running servers, as providers of the gateway. */
export default fp<UpstreamWingOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'upstream-wing', dependencies: ['gateway-wing', 'identity'] })
