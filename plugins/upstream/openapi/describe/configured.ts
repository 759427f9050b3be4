// Parameters of operations that the configuration sets, so that they are not arguments of the tools.
import { normalizeSecurity } from '../../../../schemas/openapi-upstream.ts'
import type { ServerConfig } from '../../../../schemas/server.ts'
import type { CompiledDescription, OperationPlan } from '../plan.ts'

/** The names of the headers and of the API key that the configuration adds to requests. */
export interface ConfiguredParameters {
  /** The names of the configured headers, in lower case. */
  readonly headers: readonly string[]
  /** The place of the configured API key, as far as the configuration states it; undefined if there is no key. */
  readonly apiKey: { readonly name: string | undefined, readonly in: string | undefined } | undefined
  /** The only origin that gets them; undefined: the origin of the API, wherever that is. */
  readonly origin: string | undefined
}

/** Returns what a server's configuration adds to requests. */
export function configuredParametersOf ({ url, headers = {}, openapi }: ServerConfig): ConfiguredParameters {
  const { type, name, in: location } = normalizeSecurity(openapi?.security ?? { type: 'none' })
  // An API whose address comes from a fetched description gets them only at the origin of that description.
  const isAddressFetched = openapi?.schema === undefined && (openapi?.url === undefined || url === undefined)
  const fetchedFrom = isAddressFetched ? openapi?.url ?? url : undefined
  return {
    headers: Object.keys(headers).map((header) => header.toLowerCase()),
    apiKey: type === 'apiKey' ? { name, in: location } : undefined,
    origin: fetchedFrom !== undefined && URL.canParse(fetchedFrom) ? new URL(fetchedFrom).origin : undefined
  }
}

/** Whether the configuration sets a Parameter Object of an operation. */
export type IsConfigured =
  (parameter: Readonly<Record<string, unknown>>, plan: Pick<OperationPlan, 'server' | 'anonymous'>) => boolean

/** Creates the check for the operations of a description. In doubt, a parameter remains an argument. */
export function isConfiguredIn (
  { serverUrl, credentialDefaults }: Pick<CompiledDescription, 'serverUrl' | 'credentialDefaults'>,
  { headers, apiKey, origin }: ConfiguredParameters
): IsConfigured {
  const { apiKey: described } = credentialDefaults
  const { name: keyName = described?.name, in: keyLocation = described?.in ?? 'header' } = apiKey ?? {}
  const originOf = (url: string | undefined): string | undefined => url === undefined ? undefined : new URL(url).origin
  const apiOrigin = originOf(serverUrl)
  return ({ name: given, in: location }, { server, anonymous }) => {
    const isSent =
      (origin === undefined || origin === apiOrigin) && (server === undefined || originOf(server) === apiOrigin)
    if (!isSent) return false
    const fold = (name: unknown): string => location === 'header' ? String(name).toLowerCase() : String(name)
    const isKey = apiKey !== undefined && !anonymous && location === keyLocation && fold(given) === fold(keyName)
    return isKey || (location === 'header' && headers.includes(fold(given)))
  }
}
