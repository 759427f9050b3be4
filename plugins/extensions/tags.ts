import { isObject } from '../../protocol/json.ts'

/**
 * Returns the tags of an item, sorted and without duplicates. MCP does not define tags; servers put them into `tags` of
 * `_meta`, `_meta.fastmcp` or `_meta._fastmcp`.
 */
export function tagsOf ({ _meta: meta }: Readonly<Record<string, unknown>>): string[] {
  if (!isObject(meta)) return []
  const places = [meta, meta.fastmcp, meta._fastmcp]
  const tags = places.flatMap((place): unknown[] => isObject(place) && Array.isArray(place.tags) ? place.tags : [])
  return [...new Set(tags.filter((tag): tag is string => typeof tag === 'string'))].sort()
}
