import { isObject } from '../../../protocol/json.ts'
import { maskDots, containsMask } from './mask.ts'

/**
 * Replaces each mask in a config that a client sends by the stored secret at the same path.
 * @param shown the stored config with masks, as it was shown to the client
 * @returns `value`: the config, the same object if no mask was replaced; `unknown`: the paths of masks that match no
 * secret
 */
export const unmask = (sent: unknown, stored: unknown, shown: unknown): UnmaskResult =>
  // Most configs have no masks, and may be a megabyte.
  holdsMask(sent) ? unmaskPart(sent, stored, shown, '') : { value: sent, unknown: [] }

interface UnmaskResult { value: unknown, unknown: string[] }

function unmaskPart (sent: unknown, stored: unknown, shown: unknown, path: string): UnmaskResult {
  if (containsMask(sent)) {
    return sent === shown && stored !== undefined ? { value: stored, unknown: [] } : { value: sent, unknown: [path] }
  }
  if (Array.isArray(sent)) {
    const [secrets, masked] = Array.isArray(stored) && Array.isArray(shown) ? [stored, shown] : [[], []]
    const kept = keptIndices(sent, masked)
    const parts = sent.map((each, at) => kept.has(at) && holdsMask(each)
      ? { value: secrets[at] as unknown, unknown: [] }
      : unmaskPart(each, undefined, undefined, `${path}.${at}`)
    )
    const isSame = parts.every(({ value }, at) => value === sent[at])
    return { value: isSame ? sent : parts.map(({ value }) => value), unknown: parts.flatMap((part) => part.unknown) }
  }
  if (!isObject(sent)) return { value: sent, unknown: [] }
  const unknown: string[] = []
  let isSame = true
  const entries = Object.entries(sent).map(([key, each]) => {
    const part = unmaskPart(
      each,
      isObject(stored) && Object.hasOwn(stored, key) ? stored[key] : undefined,
      isObject(shown) && Object.hasOwn(shown, key) ? shown[key] : undefined,
      path === '' ? key : `${path}.${key}`
    )
    for (const mask of part.unknown) unknown.push(mask)
    isSame &&= part.value === each
    return [key, part.value]
  })
  return { value: isSame ? sent : Object.fromEntries(entries), unknown }
}

/** Whether a value contains a mask at any depth. */
function holdsMask (value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return containsMask(value)
  for (const name in value) if (holdsMask((value as Record<string, unknown>)[name])) return true
  return false
}

/**
 * Returns the indices of the elements that are the same as in the list shown to the client. Masks look alike, and
 * elements may have been removed. So a mask is identified together with the element before it, and an object or list
 * that contains masks by its whole content.
 */
function keptIndices (sent: readonly unknown[], shown: readonly unknown[]): Set<number> {
  // `shown` is also empty for a list within a list, whose elements cannot be compared.
  if (shown.length === 0) return new Set()
  const [now, before] = [sent.map(signatureOf), shown.map(signatureOf)]
  const seen = new Set<string>()
  const repeated = new Set(before.filter((signature) => seen.size === seen.add(signature).size))
  const isShorter = now.length < before.length
  const isKept = (signature: string, at: number): boolean =>
    signature === before[at] && !(isShorter && repeated.has(signature))
  return new Set(now.flatMap((signature, at) => isKept(signature, at) ? [at] : []))
}

/** Returns a text that identifies an element of a list. */
const signatureOf = (element: unknown, at: number, list: readonly unknown[]): string =>
  JSON.stringify(typeof element === 'string' && element.startsWith(maskDots) ? [list[at - 1], element] : element)
