import { nextCatalogueId, type Catalogue, type Item } from '../../../protocol/lists.ts'
import { isAcceptedDigest, type Pin, type PinMode, type ServerPins } from './compare.ts'
import {
  knownItemDigest, digestOfInstructions, instructionsItem, definitionKeyOf, definitionKindOf, pinnedListKinds
} from './definitions.ts'

/** How a definition that is not accepted is listed: with the pinned text (`changed`), or not at all (`withheld`). */
export type UnacceptedState = 'changed' | 'withheld'

/** The catalogue to list, and the definitions that cannot be used, by `definitionKeyOf`. */
export interface ListedCatalogue {
  readonly catalogue: Catalogue
  readonly refused: ReadonlyMap<string, UnacceptedState>
}

/**
 * Returns the catalogue to list in the modes `ask` and `block`. Instead of a definition that is not accepted, `block`
 * lists the pinned text, if it is known; `ask` lists nothing.
 * @param pinned undefined if the pins are not loaded yet: then none of the pinned kinds of items are listed
 * @param isFirst whether `catalogue` is the one that was read first
 */
export function listedCatalogueOf (
  catalogue: Catalogue, pinned: ServerPins | undefined, mode: Extract<PinMode, 'ask' | 'block'>, isFirst: boolean
): ListedCatalogue {
  const pins = new Map((pinned?.pins ?? []).map((pin) => [definitionKeyOf(pin), pin]))
  const refused = new Map<string, UnacceptedState>()
  /** Returns the text to list; undefined if the item must be omitted. */
  const textToList = (
    definition: Pick<Pin, 'kind' | 'item'>, digest: string | undefined, text: string
  ): string | undefined => {
    const pin = pins.get(definitionKeyOf(definition))
    if (pin !== undefined && digest !== undefined && isAcceptedDigest(pin, digest, isFirst)) return text
    const former = mode === 'block' && pin?.digest !== undefined ? pin.text : undefined
    refused.set(definitionKeyOf(definition), former === undefined ? 'withheld' : 'changed')
    return former
  }
  let isSame = true
  const lists = { ...catalogue.lists }
  for (const list of pinnedListKinds) {
    const items = catalogue.lists[list].flatMap((item): Item | [] => {
      const text = textToList({ kind: definitionKindOf(list), item: item.key }, knownItemDigest(item), item.text)
      if (text === item.text) return item
      isSame = false
      return text === undefined ? [] : { key: item.key, text }
    })
    lists[list] = items
  }
  let { instructions } = catalogue
  if (instructions !== undefined && instructions !== '') {
    const definition = { kind: 'instructions', item: instructionsItem } as const
    const written = JSON.stringify(instructions)
    const text = textToList(definition, digestOfInstructions(instructions), written)
    if (text !== written) {
      isSame = false
      instructions = text === undefined ? undefined : JSON.parse(text) as string
    }
  }
  return { catalogue: isSame ? catalogue : { ...catalogue, id: nextCatalogueId(), lists, instructions }, refused }
}
