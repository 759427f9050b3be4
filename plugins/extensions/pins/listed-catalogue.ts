import { nextCatalogueId, type Catalogue, type Item } from '../../../protocol/lists.ts'
import { isAcceptedDigest, type Pin, type PinMode, type ServerPins } from './compare.ts'
import {
  knownItemDigest, digestOfInstructions, instructionsItem, definitionKeyOf, definitionKindOf, pinnedListKinds
} from './definitions.ts'

/** The treatment of a definition that is not accepted: listed as it was pinned (`changed`), or omitted (`withheld`). */
export type UnacceptedState = 'changed' | 'withheld'

/** The part of a catalogue that is listed, and the definitions that cannot be used, by `keyOf`. */
export interface ListedCatalogue {
  readonly catalogue: Catalogue
  readonly refused: ReadonlyMap<string, UnacceptedState>
}

/**
 * Returns the part of a catalogue that is listed in the modes `ask` and `block`. `ask` omits definitions that are not
 * accepted; `block` lists them as they were pinned, if that text is known.
 * @param pinned undefined: the pins are not loaded yet, so nothing is listed
 * @param isFirst whether it is the catalogue that was read first
 */
export function listedCatalogueOf (
  catalogue: Catalogue, pinned: ServerPins | undefined, mode: Extract<PinMode, 'ask' | 'block'>, isFirst: boolean
): ListedCatalogue {
  const pins = new Map((pinned?.pins ?? []).map((pin) => [definitionKeyOf(pin), pin]))
  const refused = new Map<string, UnacceptedState>()
  /** Returns the text to list; undefined if the item is omitted. */
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
