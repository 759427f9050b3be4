import { isObject, memberOf } from '../../protocol/json.ts'
import { memoized } from '../../protocol/memoized.ts'
import type { Surface } from './surface.ts'

const appScheme = 'ui://'

/**
 * The provider of the first visible tool whose MCP App has this URI; undefined if there is none. Servers need not list
 * the resources of their apps (MCP Apps, "UI Resource Format").
 */
export function mcpAppProviderOf (surface: Surface, uri: string): string | undefined {
  return uri.startsWith(appScheme) ? providersOf(surface).get(uri) : undefined
}

const providersOf = memoized(({ parts }: Surface): ReadonlyMap<string, string> => {
  const providers = new Map<string, string>()
  for (const { item, provider } of parts.tools.targets.values()) {
    const text = item?.text.includes(appScheme) === true ? memberOf(item.text, '_meta') : undefined
    const meta: unknown = text === undefined ? undefined : JSON.parse(text)
    if (!isObject(meta)) continue
    const uri = isObject(meta.ui) ? meta.ui.resourceUri : meta['ui/resourceUri']
    if (typeof uri === 'string' && !providers.has(uri)) providers.set(uri, provider)
  }
  return providers
})
