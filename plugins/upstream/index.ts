import fp from 'fastify-plugin'
import type { UpstreamPluginOptions } from './parts.ts'

export { upstreamLimits } from './limits.ts'
export {
  type ProcessEnvironment, createUserTextCheck, expandVariables, isGatewaySecretName, mapExpandableTexts,
  variablePattern
} from './links/environment.ts'
export { isStartPageToken, startPageToken, newTicket, withBrowserTag } from './login/starts.ts'
export type { ProbeResult } from './probe.ts'
export type { Upstream } from './upstream.ts'
export type { CatalogueReviewer } from './catalogues/review.ts'
export type { Upstreams } from './upstreams.ts'
export type { UserValues } from './values/values.ts'
export type { UpstreamPluginOptions } from './parts.ts'

/** Registers the plugins that connect to the upstream servers, and that make them providers of the gateway. */
export default fp<UpstreamPluginOptions>(async (app, options) => {
  await app.register(import('./parts.ts'), options)
}, { name: 'upstream-wing', dependencies: ['gateway', 'identity'] })
