import { isObject } from '../../../protocol/json.ts'
import { kinds, nextCatalogueId, type Catalogue } from '../../../protocol/lists.ts'

/** Items that are serialised in one piece: a catalogue may have many megabytes, and the event loop is not held for all of it. */
const pieceSize = 50

/** A catalogue as JSON text for the cache on disk, in pieces. */
export function * catalogueText ({ id: _, lists, ...rest }: Catalogue): Generator<string> {
  yield `${JSON.stringify(rest).slice(0, -1)},"lists":{`
  for (const kind of kinds) {
    yield `${kind === kinds[0] ? '' : ','}${JSON.stringify(kind)}:[`
    for (let from = 0; from < lists[kind].length; from += pieceSize) {
      yield `${from === 0 ? '' : ','}${JSON.stringify(lists[kind].slice(from, from + pieceSize)).slice(1, -1)}`
    }
    yield ']'
  }
  yield '}}'
}

const isItem = (value: unknown): boolean =>
  isObject(value) && typeof value.key === 'string' && typeof value.text === 'string' && value.text.startsWith('{')

/** A catalogue from a value of the cache; undefined when it is not a valid one. */
export function toCatalogue (value: unknown): Catalogue | undefined {
  if (!isObject(value) || !isObject(value.lists) || !isObject(value.extras) || !isObject(value.capabilities)) return undefined
  const { lists, extras } = value
  if (typeof value.serverInfo !== 'string' || typeof value.capabilityClass !== 'string') return undefined
  if (!kinds.every((kind) => Array.isArray(lists[kind]) && lists[kind].every(isItem) && typeof extras[kind] === 'string')) return undefined
  return { ...value, id: nextCatalogueId() } as unknown as Catalogue
}
