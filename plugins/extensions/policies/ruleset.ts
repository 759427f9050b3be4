import type { Item } from '../../../protocol/lists.ts'
import { memoized } from '../../../protocol/memoized.ts'
import type { Policy } from '../../../schemas/policies.ts'
import { BoundedMap } from '../../base/limits/index.ts'
import type { ItemFilter } from '../../settings/index.ts'
import { extensionsLimits } from '../limits.ts'
import type { PolicyContext, PrincipalFacts, ItemFacts } from './cel.ts'
import { CallPolicyContext, kindOfList, toItemFacts } from './facts.ts'
import { findHidingMatch, rulesOfItem, toRule, type Rule, type RulesOfItem } from './rule.ts'

type ViewFacts = Pick<PolicyContext, 'principal' | 'route'>

/**
 * The rules of the enabled policies of one snapshot, in order. Results of fixed rules are cached, and shared by callers
 * for whom the facts that the rules use are equal.
 */
export class Ruleset {
  readonly rules: readonly Rule[]
  /** The rules that decide which items are listed: the enforced fixed rules; empty if none of these hides items. */
  readonly listRules: readonly Rule[]
  /** The filters, by the facts that `listRules` use, as text. */
  readonly #filters = new BoundedMap<string, ItemFilter>(extensionsLimits.policies.filters)
  /** The rules for each item, by the facts that fixed rules use, as text. */
  readonly #rulesOfItems = new BoundedMap<string, WeakMap<ItemFacts, RulesOfItem>>(extensionsLimits.policies.filters)
  readonly #filterKeyOf: (facts: ViewFacts) => string
  readonly #fixedKeyOf: (facts: ViewFacts) => string

  constructor (policies: Iterable<Policy>) {
    this.rules = [...policies].filter(({ enabled }) => enabled !== false).map(toRule)
    const enforcedFixed = this.rules.filter(({ isFixed, isObserved }) => isFixed && !isObserved)
    this.listRules = enforcedFixed.some(({ policy }) => policy.then === 'hide') ? enforcedFixed : []
    this.#filterKeyOf = keyWriterOf(this.listRules)
    this.#fixedKeyOf = keyWriterOf(this.rules.filter(({ isFixed }) => isFixed))
  }

  /** Returns the filter that removes the items that the rules hide from a view; undefined if the rules hide none. */
  filterOf (facts: ViewFacts): ItemFilter | undefined {
    if (this.listRules.length === 0) return undefined
    const key = this.#filterKeyOf(facts)
    let filter = this.#filters.get(key)
    if (filter === undefined) this.#filters.setNewest(key, filter = createFilter(this.listRules, facts, key))
    return filter
  }

  /** Returns the rules for calls of the item by the caller in `context`. */
  rulesOf (context: PolicyContext): RulesOfItem {
    const key = this.#fixedKeyOf(context)
    let known = this.#rulesOfItems.get(key)
    if (known === undefined) this.#rulesOfItems.setNewest(key, known = new WeakMap())
    let rules = known.get(context.tool)
    if (rules === undefined) {
      rules = rulesOfItem(this.rules, context)
      if (!rules.hasFailed) known.set(context.tool, rules)
    }
    return rules
  }
}

const principalMembers = ['username', 'isAdmin', 'teams', 'key', 'address', 'client'] as const satisfies
  ReadonlyArray<keyof PrincipalFacts>

/** Returns a function that returns a cache key: the facts that the given rules use, as text. */
function keyWriterOf (rules: readonly Rule[]): (facts: ViewFacts) => string {
  const conditions = rules.flatMap(({ condition }) => condition ?? [])
  const namesRoute = conditions.some(({ variables }) => variables.has('route'))
  const members = principalMembers.filter((member) => conditions.some(({ variables, principalMembers: named }) =>
    variables.has('principal') && named?.has(member) !== false))
  const textOf = memoized((principal: PrincipalFacts) => JSON.stringify(members.map((member) => principal[member])))
  return ({ principal, route }) => namesRoute ? `${textOf(principal)} ${route}` : textOf(principal)
}

function createFilter (listRules: readonly Rule[], facts: ViewFacts, key: string): ItemFilter {
  const known = new Map<string, WeakMap<Item, boolean>>()
  return {
    key,
    isHidden: (server, list, item) => {
      let ofServer = known.get(server)
      if (ofServer === undefined) known.set(server, ofServer = new WeakMap())
      let isHidden = ofServer.get(item)
      if (isHidden === undefined) {
        const tool = toItemFacts({ server, kind: kindOfList(list), name: item.key }, item)
        const context = new CallPolicyContext({ ...facts, tool, now: new Date(0) }, {}, () => '')
        isHidden = findHidingMatch(listRules, context) !== undefined
        ofServer.set(item, isHidden)
      }
      return isHidden
    }
  }
}
