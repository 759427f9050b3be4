import type { Policy } from '../../../schemas/policies.ts'
import type { AppliedPolicy } from '../../gateway/index.ts'
import { compileCondition, InvalidCondition, type Condition, type PolicyContext } from './cel.ts'

/** An enabled policy with its compiled condition. */
export interface Rule {
  readonly policy: Policy
  /** Undefined for a stored condition that cannot be compiled, for example after an edit of the settings file. */
  readonly condition: Condition | undefined
  readonly isObserved: boolean
  /** Whether its condition uses neither arguments nor time; then its outcome for a caller and an item never changes. */
  readonly isFixed: boolean
}

/** A rule that matched a call, or failed. `problem`: why it failed. */
export interface Match { readonly rule: Rule, readonly problem?: string }

/** The outcomes of fixed rules for one caller and one item; undefined: the rule does not match. */
export type Outcomes = Map<Rule, Match | undefined>

/** The decision of the policies about a call. */
export interface Verdict {
  readonly decision: Policy['then']
  /** The rule that decides; undefined if none matches, so that the call is allowed. */
  readonly match: Match | undefined
  /** The matching rules that only observe. */
  readonly observed: readonly Match[]
}

/** The enabled policies of one snapshot, in their order. */
export interface Ruleset {
  readonly rules: readonly Rule[]
  /** The enforced rules that use neither arguments nor time; empty if none of them hides items. */
  readonly listRules: readonly Rule[]
}

const emptyRuleset: Ruleset = { rules: [], listRules: [] }
const rulesets = new WeakMap<ReadonlyMap<string, Policy>, Ruleset>()
const compiled = new WeakMap<Policy, Rule>()

/** Returns the rules of the stored policies, compiled once. */
export function rulesetOf (policies: ReadonlyMap<string, Policy>): Ruleset {
  if (policies.size === 0) return emptyRuleset
  let ruleset = rulesets.get(policies)
  if (ruleset === undefined) {
    const rules = [...policies.values()].filter(({ enabled }) => enabled !== false).map(toRule)
    const decidable = rules.filter(({ isFixed, isObserved }) => isFixed && !isObserved)
    ruleset = { rules, listRules: decidable.some(({ policy }) => policy.then === 'hide') ? decidable : [] }
    rulesets.set(policies, ruleset)
  }
  return ruleset
}

function toRule (policy: Policy): Rule {
  let rule = compiled.get(policy)
  if (rule === undefined) {
    const condition = compileStored(policy)
    const isFixed = condition !== undefined && variablePreventingHide(condition) === undefined
    rule = { policy, condition, isObserved: policy.mode === 'observe', isFixed }
    compiled.set(policy, rule)
  }
  return rule
}

function compileStored (policy: Policy): Condition | undefined {
  try {
    const condition = compileCondition(policy.when)
    return policy.then === 'hide' && variablePreventingHide(condition) !== undefined ? undefined : condition
  } catch (error) {
    if (error instanceof InvalidCondition) return undefined
    throw error
  }
}

/** Returns the variable because of which a rule cannot hide items from lists; undefined if there is none. */
export const variablePreventingHide = ({ variables }: Condition): string | undefined =>
  ['args', 'now'].find((name) => variables.has(name))

/** Evaluates a rule. A rule that fails is returned as a match, so that it denies. */
function matchOf (rule: Rule, context: PolicyContext, outcomes: Outcomes): Match | undefined {
  if (!rule.isFixed) return evaluate(rule, context)
  if (outcomes.has(rule)) return outcomes.get(rule)
  const match = evaluate(rule, context)
  // A failure may pass: patterns take work until they are compiled.
  if (match?.problem === undefined) outcomes.set(rule, match)
  return match
}

function evaluate (rule: Rule, context: PolicyContext): Match | undefined {
  if (rule.condition === undefined) return { rule, problem: 'its condition is not valid' }
  try {
    return rule.condition.isTrue(context) ? { rule } : undefined
  } catch (error) {
    return { rule, problem: (error as Error).message }
  }
}

const decisionOf = ({ rule, problem }: Match): Policy['then'] => problem === undefined ? rule.policy.then : 'deny'

/**
 * Decides about a call: the first enforced rule that matches. A hidden item does not exist, whatever the arguments and
 * the time are, so rules that use these do not take precedence over a rule that hides.
 * @param outcomes cached outcomes for this caller and item; new ones are added
 */
export function decide (
  { rules, listRules }: Ruleset, context: PolicyContext, outcomes: Outcomes = new Map()
): Verdict {
  const observed: Match[] = []
  const hiding = findHiding(listRules, context, outcomes)
  if (hiding !== undefined) return { decision: 'hide', match: hiding, observed }
  for (const rule of rules) {
    const match = matchOf(rule, context, outcomes)
    if (match === undefined) continue
    if (!rule.isObserved) return { decision: decisionOf(match), match, observed }
    observed.push(match)
  }
  return { decision: 'allow', match: undefined, observed }
}

const strictness: Readonly<Record<Policy['then'], number>> = { allow: 0, ask: 1, deny: 2, hide: 3 }

/** Returns the strictest of the verdicts about an item under several names; of equal ones, the first. */
export const strictestVerdict = (verdicts: readonly [Verdict, ...Verdict[]]): Verdict =>
  verdicts.reduce((one, other) => strictness[other.decision] > strictness[one.decision] ? other : one)

/** Returns the rule that hides an item from lists. @param rules rules that use neither arguments nor time */
export function findHiding (
  rules: readonly Rule[], context: PolicyContext, outcomes: Outcomes = new Map()
): Match | undefined {
  for (const rule of rules) {
    const match = matchOf(rule, context, outcomes)
    if (match !== undefined) return decisionOf(match) === 'hide' ? match : undefined
  }
  return undefined
}

/** Returns the policy for the record of a call: the one that decides, otherwise the first that observes. */
export function appliedPolicyOf ({ match, observed }: Verdict): AppliedPolicy | undefined {
  const named = match ?? observed[0]
  if (named === undefined) return undefined
  const { policy: { id, name }, isObserved } = named.rule
  return { id, name, mode: isObserved ? 'observe' : 'enforce', decision: decisionOf(named) }
}

/** Returns why a rule decides, as a sentence without its full stop. */
export const reasonOf = (match: Match | undefined): string =>
  match === undefined
    ? 'No policy matches'
    : match.problem === undefined
      ? 'Its condition is true'
      : `Its condition failed, which denies the call: ${match.problem}`

/** Returns the observing rules, for the result of a policy test. */
export const observedRules = ({ observed }: Verdict): Array<{ id: string, name: string, decision: Policy['then'] }> =>
  observed.map((match) => ({ id: match.rule.policy.id, name: match.rule.policy.name, decision: decisionOf(match) }))
