import type { Item } from '../../../protocol/lists.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { ItemFilter } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'
import type { PolicyContext } from './cel.ts'
import { kindOfList, toContext, toToolFacts } from './facts.ts'
import { findHiding, type Ruleset } from './ruleset.ts'

type ViewFacts = Pick<PolicyContext, 'principal' | 'route'>

const filters = new WeakMap<Ruleset, BoundedMap<string, ItemFilter>>()

/** What rules hide from a view. Views whose facts the rules cannot tell apart share a filter. */
export function itemFilterOf (ruleset: Ruleset, facts: ViewFacts): ItemFilter {
  let known = filters.get(ruleset)
  if (known === undefined) filters.set(ruleset, known = new BoundedMap(extensionsLimits.policies.filters))
  const key = keyOf(ruleset, facts)
  let filter = known.get(key)
  if (filter === undefined) known.setNewest(key, filter = createFilter(ruleset, facts, key))
  return filter
}

/** The facts that the rules name, as text. */
function keyOf ({ listRules }: Ruleset, { principal, route }: ViewFacts): string {
  const names = (name: string): boolean => listRules.some(({ condition }) => condition?.variables.has(name))
  const members = Object.entries(principal).filter(([member]) => listRules.some(({ condition }) =>
    condition?.variables.has('principal') === true && condition.principalMembers?.has(member) !== false))
  return JSON.stringify([members, names('route') ? route : ''])
}

function createFilter ({ listRules }: Ruleset, facts: ViewFacts, key: string): ItemFilter {
  const known = new Map<string, WeakMap<Item, boolean>>()
  return {
    key,
    isHidden: (server, list, item) => {
      let ofServer = known.get(server)
      if (ofServer === undefined) known.set(server, ofServer = new WeakMap())
      let isHidden = ofServer.get(item)
      if (isHidden === undefined) {
        const tool = toToolFacts({ server, kind: kindOfList(list), name: item.key }, item)
        isHidden = findHiding(listRules, toContext({ ...facts, tool, now: new Date(0) }, {}, () => '')) !== undefined
        ofServer.set(item, isHidden)
      }
      return isHidden
    }
  }
}
