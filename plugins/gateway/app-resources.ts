import { isObject, memberOf } from '../../protocol/json.ts'
import type { Surface } from './surface.ts'

const appScheme = 'ui://'
const known = new WeakMap<Surface, ReadonlyMap<string, string>>()

/**
 * The provider of the first shown tool whose MCP App has this URI. Servers need not list the resources of their apps
 * (MCP Apps, "UI Resource Format").
 */
export function appProviderOf (surface: Surface, uri: string): string | undefined {
  if (!uri.startsWith(appScheme)) return undefined
  const providers = known.get(surface) ?? collectApps(surface)
  known.set(surface, providers)
  return providers.get(uri)
}

function collectApps ({ parts }: Surface): Map<string, string> {
  const providers = new Map<string, string>()
  for (const { item, provider } of parts.tools.targets.values()) {
    const text = item?.text.includes(appScheme) === true ? memberOf(item.text, '_meta') : undefined
    const meta: unknown = text === undefined ? undefined : JSON.parse(text)
    if (!isObject(meta)) continue
    const uri = isObject(meta.ui) ? meta.ui.resourceUri : meta['ui/resourceUri']
    if (typeof uri === 'string' && !providers.has(uri)) providers.set(uri, provider)
  }
  return providers
}
