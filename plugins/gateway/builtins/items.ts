import type { Snapshot } from '../../../db/store.ts'
import { makeStaticCatalogue, isSameCatalogue, type Catalogue } from '../../../protocol/lists.ts'
import type { BuiltInPrompt, BuiltInResource } from '../../../schemas/builtins.ts'

/** The provider's name. No server has it, since names of servers do not start with `$`. */
export const builtInProviderName = '$builtins'

/** The enabled built-in prompts and resources of one settings snapshot, and their catalogue. */
export interface BuiltInItems {
  /** By name. If a settings file contains several prompts with one name, only the first. */
  readonly prompts: ReadonlyMap<string, BuiltInPrompt>
  /** By URI. If a settings file contains several resources with one URI, only the first. */
  readonly resources: ReadonlyMap<string, BuiltInResource>
  readonly catalogue: Catalogue
}

/**
 * Collects the enabled built-in prompts and resources.
 * @param version the version of the gateway
 * @param former the previous result, whose catalogue is reused if its lists are equal
 */
export function collectBuiltIns (
  snapshot: Pick<Snapshot, 'prompts' | 'resources'>, version: string, former?: BuiltInItems
): BuiltInItems {
  const prompts = byKey(snapshot.prompts.values(), ({ name }) => name)
  const resources = byKey(snapshot.resources.values(), ({ uri }) => uri)
  const made = makeStaticCatalogue({
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
  // Announced even without items: clients do not use a capability that was not announced when they connected.
  const catalogue = {
    ...made, capabilities: { prompts: { listChanged: true }, resources: { listChanged: true, subscribe: true } }
  }
  return {
    prompts, resources, catalogue: former && isSameCatalogue(former.catalogue, catalogue) ? former.catalogue : catalogue
  }
}

/** The enabled items, by key. Of several items with one key, only the first. */
export function byKey<Item extends { enabled?: boolean }> (
  items: Iterable<Item>, keyOf: (item: Item) => string
): Map<string, Item> {
  const found = new Map<string, Item>()
  for (const item of items) if (item.enabled !== false && !found.has(keyOf(item))) found.set(keyOf(item), item)
  return found
}

/** The URIs of resources whose content has changed, or which were removed. */
export const changedUris = (former: BuiltInItems, next: BuiltInItems): string[] =>
  [...former.resources].flatMap(([uri, before]) => {
    const now = next.resources.get(uri)
    return now?.content === before.content && now.mimeType === before.mimeType ? [] : [uri]
  })
