import type { Item } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { ItemFilter } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'
import type { PolicyContext, PrincipalFacts } from './cel.ts'
import { CallContext, kindOfList, toToolFacts, type Subject } from './facts.ts'
import { findHiding, type Outcomes, type Rule, type Ruleset } from './ruleset.ts'

type ViewFacts = Pick<PolicyContext, 'principal' | 'route'>

interface KnownOutcomes { readonly item: Item | undefined, readonly outcomes: Outcomes }

/** Cached results of one ruleset. Callers for whom the facts used by the rules are equal share an entry. */
class Known {
  /** By the facts that rules which hide items use. */
  readonly filters = new BoundedMap<string, ItemFilter>(extensionsLimits.policies.filters)
  /** By the facts that fixed rules use, and the item. */
  readonly outcomes = new BoundedMap<string, KnownOutcomes>(extensionsLimits.policies.filters)
  readonly filterKeyOf: (facts: ViewFacts) => string
  readonly outcomesKeyOf: (facts: ViewFacts) => string

  constructor ({ rules, listRules }: Ruleset) {
    this.filterKeyOf = keyWriterOf(listRules)
    this.outcomesKeyOf = keyWriterOf(rules.filter(({ isFixed }) => isFixed))
  }
}

const knownByRuleset = new WeakMap<Ruleset, Known>()

function knownOf (ruleset: Ruleset): Known {
  let known = knownByRuleset.get(ruleset)
  if (known === undefined) knownByRuleset.set(ruleset, known = new Known(ruleset))
  return known
}

/** Returns the filter of items that the rules hide from a view. */
export function itemFilterOf (ruleset: Ruleset, facts: ViewFacts): ItemFilter {
  const { filters, filterKeyOf } = knownOf(ruleset)
  const key = filterKeyOf(facts)
  let filter = filters.get(key)
  if (filter === undefined) filters.setNewest(key, filter = createFilter(ruleset, facts, key))
  return filter
}

/**
 * Returns the cached outcomes of fixed rules for a caller and an item.
 * @param item undefined if its server does not list it
 */
export function outcomesOf (
  ruleset: Ruleset, facts: ViewFacts, { server, kind, name }: Subject, item: Item | undefined
): Outcomes {
  const { outcomes: all, outcomesKeyOf } = knownOf(ruleset)
  const key = `${outcomesKeyOf(facts)}\n${server}\n${kind}\n${name}`
  let known = all.get(key)
  if (known === undefined || known.item !== item) all.setNewest(key, known = { item, outcomes: new Map() })
  return known.outcomes
}

const principalMembers = ['username', 'isAdmin', 'teams', 'key', 'address', 'client'] as const satisfies
  ReadonlyArray<keyof PrincipalFacts>

/** Returns a function that writes the facts used by the rules as text, for use as a cache key. */
function keyWriterOf (rules: readonly Rule[]): (facts: ViewFacts) => string {
  const conditions = rules.flatMap(({ condition }) => condition ?? [])
  const namesRoute = conditions.some(({ variables }) => variables.has('route'))
  const members = principalMembers.filter((member) => conditions.some(({ variables, principalMembers: named }) =>
    variables.has('principal') && named?.has(member) !== false))
  const textOf = memoized((principal: PrincipalFacts) => JSON.stringify(members.map((member) => principal[member])))
  return ({ principal, route }) => namesRoute ? `${textOf(principal)} ${route}` : textOf(principal)
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
        const context = new CallContext({ ...facts, tool, now: new Date(0) }, {}, () => '')
        isHidden = findHiding(listRules, context) !== undefined
        ofServer.set(item, isHidden)
      }
      return isHidden
    }
  }
}
