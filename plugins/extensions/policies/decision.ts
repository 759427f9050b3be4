import type { Catalogue } from '../../../protocol/lists.ts'
import type { Policy } from '../../../schemas/policies.ts'
import type { AppliedPolicy } from '../../gateway/index.ts'
import type { PolicyContext, PrincipalFacts } from './cel.ts'
import {
  CallPolicyContext, findCatalogueItem, equivalentNamesOf, templatesFor, toItemFacts, type RequestedItem
} from './facts.ts'
import { decisionOf, evaluateRule, type Match, type RulesOfItem } from './rule.ts'
import type { Ruleset } from './ruleset.ts'

/** What the policies decide about a call. */
export interface Verdict {
  readonly decision: Policy['then']
  /** The rule that decides; undefined if none matches, so that the call is allowed. */
  readonly match: Match | undefined
  /** The matching rules that only observe, and come before the rule that decides. */
  readonly observed: readonly Match[]
}

/**
 * Decides about a call: the first enforced rule that matches decides. A rule that hides the item takes precedence over
 * rules that use the arguments or the time, since a hidden item stays hidden for any arguments and at any time.
 */
function decide ({ hiding, steps }: RulesOfItem, context: PolicyContext): Verdict {
  const observed: Match[] = []
  if (hiding !== undefined) return { decision: 'hide', match: hiding, observed }
  for (const { rule, match = evaluateRule(rule, context) } of steps) {
    if (match === undefined) continue
    if (!rule.isObserved) return { decision: decisionOf(match), match, observed }
    observed.push(match)
  }
  return { decision: 'allow', match: undefined, observed }
}

const strictness: Readonly<Record<Policy['then'], number>> = { allow: 0, ask: 1, deny: 2, hide: 3 }

/** Returns the strictest of several verdicts; if several are equally strict, the first of them. */
const strictestVerdict = (verdicts: readonly [Verdict, ...Verdict[]]): Verdict =>
  verdicts.reduce((one, other) => strictness[other.decision] > strictness[one.decision] ? other : one)

/** A call that the policies decide about: a real one, or one of a policy test. */
export interface CallToEvaluate {
  /** The item to call. */
  readonly subject: RequestedItem
  readonly principal: PrincipalFacts
  /** The parsed arguments. */
  readonly args: unknown
  /** Returns the arguments as JSON text. */
  readonly argsText: () => string
  readonly route: string
  readonly now: Date
}

/**
 * Decides about a call. If the URI of a resource has several spellings, decides about each spelling, and returns the
 * strictest verdict.
 * @param catalogue the catalogue of the server for this caller; undefined if unknown
 */
export function decideAbout (ruleset: Ruleset, call: CallToEvaluate, catalogue: Catalogue | undefined): Verdict {
  const { subject, principal, args, argsText, route, now } = call
  const forName = (name: string): [RulesOfItem, PolicyContext] => {
    const tool = toItemFacts({ ...subject, name }, findCatalogueItem(catalogue, subject.kind, name))
    const context = new CallPolicyContext({ principal, route, now, tool }, args, argsText)
    return [ruleset.rulesOf(context), context]
  }
  const verdict = decide(...forName(subject.name))
  if (subject.kind !== 'resource') return verdict
  const names = equivalentNamesOf(catalogue, subject)
  const strictest = strictestVerdict([verdict, ...names.slice(1).map((name) => decide(...forName(name)))])
  if (strictest.match !== undefined || ruleset.listRules.length === 0) return strictest
  // A hidden template also hides the resources that it matches, unless a rule decides about the resource itself.
  const hiding = templatesFor(catalogue, subject, names)
    .map((name) => forName(name)[0].hiding).find((match) => match !== undefined)
  return hiding === undefined ? strictest : { ...strictest, decision: 'hide', match: hiding }
}

/**
 * Returns the policy to name in the record of a call: the one that decides, or else the first one that observes, and
 * all those that observe if there are others; undefined if no policy matches.
 */
export function appliedPolicyOf (verdict: Verdict): AppliedPolicy | undefined {
  const { match, observed: [first, ...more] } = verdict
  const named = match ?? first
  if (named === undefined) return undefined
  const { policy: { id, name }, isObserved } = named.rule
  const hasOthers = more.length > 0 || (match !== undefined && first !== undefined)
  return {
    id,
    name,
    mode: isObserved ? 'observe' : 'enforce',
    decision: decisionOf(named),
    ...hasOthers && { observed: toObservedRules(verdict) }
  }
}

/** Returns why a rule decides, as a sentence without its full stop. @param match undefined if no rule matches */
export const explainMatch = (match: Match | undefined): string =>
  match === undefined
    ? 'No policy matches'
    : match.problem === undefined
      ? 'Its condition is true'
      : `Its condition failed, which denies the call: ${match.problem}`

/** Returns the observing rules that match, in the form of a policy test's result. */
export const toObservedRules = ({ observed }: Verdict): Array<{ id: string, name: string, decision: Policy['then'] }> =>
  observed.map((match) => ({ id: match.rule.policy.id, name: match.rule.policy.name, decision: decisionOf(match) }))
