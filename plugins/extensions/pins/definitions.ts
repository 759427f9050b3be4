import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../protocol/json.ts'
import { allListKinds, type Catalogue, type Item, type ListKind } from '../../../protocol/lists.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import { tagsOf } from '../tags.ts'

/** A list whose items are pinned. Resources are not pinned: their definitions do not instruct the model. */
type PinnedList = Exclude<ListKind, 'resources' | 'resourceTemplates'>
/** The lists whose items are pinned. */
export const pinnedListKinds = allListKinds.filter((kind): kind is PinnedList => !kind.startsWith('resource'))
export type DefinitionKind = 'tool' | 'prompt' | 'skill' | 'instructions'
/** Returns the kind of the definitions in a list: `tools` becomes `tool`. */
export const definitionKindOf = (list: PinnedList): DefinitionKind => list.slice(0, -1) as DefinitionKind

/** The `item` of the only definition of the kind `instructions`. */
export const instructionsItem = 'instructions'

/** The definition of one item as its server lists it, or the server's instructions. */
export interface Definition {
  readonly kind: DefinitionKind
  /** The name of the item at the server, or `instructionsItem`. */
  readonly item: string
  /** The SHA-256 hash of the definition's canonical JSON, as base64url. */
  readonly digest: string
  /** The JSON text of the definition, as listed; instructions are a JSON string. */
  readonly text: string
}

/** Returns a key that identifies a definition among those of a server. */
export const definitionKeyOf = ({ kind, item }: Pick<Definition, 'kind' | 'item'>): string => `${kind}\n${item}`

/** Members that are not part of the digest, except for tags: the model does not see them, and values may vary. */
const ignoredMembers: ReadonlySet<string> = new Set(['_meta', 'icons'])

const digests = new WeakMap<Item, string>()

/** Returns the digest of an item if `definitionsOf` has computed it; otherwise undefined. */
export const knownItemDigest = (item: Item): string | undefined => digests.get(item)

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** Returns the digest of a server's instructions. */
export const digestOfInstructions = (instructions: string): string => digestOf(JSON.stringify(instructions))

/** Returns the digest of an item, from a cache. The digest covers the tags in `_meta`, which policies read. */
function digestItem (item: Item): string {
  const known = digests.get(item)
  if (known !== undefined) return known
  const value = JSON.parse(item.text) as Record<string, unknown>
  const defined = Object.fromEntries(Object.entries(value).filter(([name]) => !ignoredMembers.has(name)))
  const tags = tagsOf(value)
  const digest = digestOf(canonicalJson(tags.length === 0 ? defined : { ...defined, _meta: { tags } }))
  digests.set(item, digest)
  return digest
}

/** Returns the definitions of a catalogue. Yields to the event loop regularly, since a catalogue may be large. */
export async function definitionsOf ({ lists, instructions }: Catalogue): Promise<Definition[]> {
  const budget = new LoopBudget()
  const found: Definition[] = []
  for (const list of pinnedListKinds) {
    const kind = definitionKindOf(list)
    for (const item of lists[list]) {
      found.push({ kind, item: item.key, digest: digestItem(item), text: item.text })
      await budget.pause()
    }
  }
  if (instructions !== undefined && instructions !== '') {
    const text = JSON.stringify(instructions)
    found.push({ kind: 'instructions', item: instructionsItem, digest: digestOf(text), text })
  }
  return found
}
