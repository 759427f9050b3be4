import type { Snapshot } from '../../../db/store.ts'
import { makeCatalogue, sameCatalogue, type Catalogue } from '../../../protocol/lists.ts'
import type { BuiltInPrompt, BuiltInResource } from '../../../schemas/builtins.ts'

/** No name of a server, since those do not begin with `$`. */
export const builtInProviderName = '$builtins'

/** The enabled built-in prompts and resources of one snapshot, and how they are listed. */
export interface BuiltInItems {
  /** By name; of several with one name (a file may have them), the first. */
  readonly prompts: ReadonlyMap<string, BuiltInPrompt>
  /** By URI, likewise. */
  readonly resources: ReadonlyMap<string, BuiltInResource>
  readonly catalogue: Catalogue
}

/** @param former what was made of an earlier snapshot: its catalogue is kept if the lists are equal */
export function itemsOf (
  snapshot: Pick<Snapshot, 'prompts' | 'resources'>, version: string, former?: BuiltInItems
): BuiltInItems {
  const prompts = byKey(snapshot.prompts.values(), ({ name }) => name)
  const resources = byKey(snapshot.resources.values(), ({ uri }) => uri)
  const made = makeCatalogue({
    name: builtInProviderName,
    version,
    prompts: [...prompts.values()].map(({ name, title, description, arguments: declared }) => ({
      name,
      title,
      description,
      arguments: declared?.map((each) => ({
        name: each.name,
        title: each.title,
        description: each.description,
        required: each.required
      }))
    })),
    resources: [...resources.values()]
      .map(({ uri, name = uri, description, mimeType }) => ({ uri, name, description, mimeType }))
  })
  // Announced even while there are none: clients never ask for a capability that was not announced at the beginning.
  const catalogue = {
    ...made, capabilities: { prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true } }
  }
  return {
    prompts, resources, catalogue: former && sameCatalogue(former.catalogue, catalogue) ? former.catalogue : catalogue
  }
}

function byKey<Item extends { enabled?: boolean }> (
  items: Iterable<Item>, keyOf: (item: Item) => string
): Map<string, Item> {
  const found = new Map<string, Item>()
  for (const item of items) if (item.enabled !== false && !found.has(keyOf(item))) found.set(keyOf(item), item)
  return found
}

/** The URIs of resources that are read as something else than before, or are gone. */
export const changedUris = (former: BuiltInItems, next: BuiltInItems): string[] =>
  [...former.resources].flatMap(([uri, before]) => {
    const now = next.resources.get(uri)
    return now?.content === before.content && now.mimeType === before.mimeType ? [] : [uri]
  })
