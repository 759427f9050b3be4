import { isObject } from '../../../../protocol/json.ts'
import type { SecurityDefaults } from '../plan.ts'
import type { References } from './refs.ts'

/**
 * The first security scheme of each type, those that the description's `security` requires before the others. A scheme whose reference
 * cannot be followed is skipped.
 * @param baseUrl the URL that relative ones are resolved against
 */
export function securityDefaultsOf (
  schemes: Readonly<Record<string, unknown>>,
  security: unknown,
  refs: References,
  baseUrl: string | undefined
): SecurityDefaults {
  const defaults: SecurityDefaults = {}
  const toAbsolute = (url: string): string => URL.canParse(url, baseUrl) ? new URL(url, baseUrl).href : url
  const requirements = Array.isArray(security) ? security.flatMap((each) => isObject(each) ? Object.keys(each) : []) : []
  const required = requirements.filter((name) => Object.hasOwn(schemes, name))
  for (const name of [...required, ...Object.keys(schemes)]) {
    const scheme = resolveScheme(schemes[name], refs)
    if (!scheme) continue
    const { type, name: parameterName, in: location, openIdConnectUrl, flows } = scheme
    if (type === 'apiKey' && typeof parameterName === 'string' && isLocation(location)) {
      defaults.apiKey ??= { name: parameterName, in: location }
    }
    if (type === 'openIdConnect' && typeof openIdConnectUrl === 'string') defaults.openIdConnectUrl ??= toAbsolute(openIdConnectUrl)
    const flow = type === 'oauth2' && isObject(flows) ? flows.clientCredentials : undefined
    if (isObject(flow) && typeof flow.tokenUrl === 'string') defaults.tokenUrl ??= toAbsolute(flow.tokenUrl)
  }
  return defaults
}

const isLocation = (value: unknown): value is 'header' | 'query' | 'cookie' =>
  value === 'header' || value === 'query' || value === 'cookie'

function resolveScheme (scheme: unknown, refs: References): Record<string, unknown> | undefined {
  try {
    return refs.resolveObject(scheme)
  } catch {
    return undefined
  }
}
