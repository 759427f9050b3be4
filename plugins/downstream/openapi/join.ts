import { annotationKeywords, type JsonObject } from './keywords.ts'

/**
 * One schema that requires all of several. The first one stays as it is; the others go beside it where that keeps their meaning, else
 * into `allOf`.
 */
export function joinSchemas (first: JsonObject, others: readonly JsonObject[]): JsonObject {
  const out = { ...first }
  const separate: JsonObject[] = []
  for (const other of others) {
    const keys = Object.keys(other)
    if (keys.length === 0) continue
    if (keys[0] === '$ref') separate.push(other)
    // One combining keyword has the same meaning beside any others.
    else if (isCombination(keys) && !Object.hasOwn(out, keys[0] ?? '')) Object.assign(out, other)
    // Other keywords may interact: they go beside annotations only.
    else if (Object.keys(out).every((key) => annotationKeywords.has(key))) Object.assign(out, { ...other, ...out })
    else separate.push(other)
  }
  if (separate.length === 0) return out
  if (separate.length === 1 && separate[0] && Object.keys(out).length === 0) return separate[0]
  return { ...out, allOf: [...(Array.isArray(out.allOf) ? out.allOf as JsonObject[] : []), ...separate] }
}

const isCombination = (keys: readonly string[]): boolean => keys.length === 1 && ['anyOf', 'oneOf', 'not'].includes(keys[0] ?? '')
