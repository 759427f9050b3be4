import type { Policy } from '../../../schemas/policies.ts'
import { compileCondition, InvalidCondition, type Condition, type PolicyContext } from './cel.ts'

/** An enabled policy with its compiled condition. */
export interface Rule {
  readonly policy: Policy
  /** The condition; undefined if it is not valid, for example after an edit of the settings file. */
  readonly condition: Condition | undefined
  /** Whether the rule only observes: its matches are recorded, but do not decide. */
  readonly isObserved: boolean
  /** Whether the condition uses neither arguments nor time: its outcome for a caller and an item is constant. */
  readonly isFixed: boolean
}

/** A rule that matches a call, or whose condition failed. `problem`: a clause that says why it failed. */
export interface Match { readonly rule: Rule, readonly problem?: string }

/** The rules for calls of one item by one caller: fixed rules that match, and rules that are not fixed. */
export interface RulesOfItem {
  /** The rule that hides the item; undefined if it is not hidden. */
  readonly hiding: Match | undefined
  /**
   * The rules in order, without the fixed rules that do not match, up to and including the first enforced fixed rule
   * that matches. `match`: the match of a fixed rule; undefined for other rules, which are evaluated for each call.
   */
  readonly steps: ReadonlyArray<{ readonly rule: Rule, readonly match: Match | undefined }>
  /** Whether a fixed rule failed. It may succeed next time, when its patterns are compiled and cost less work. */
  readonly hasFailed: boolean
}

const compiled = new WeakMap<Policy, Rule>()

/** Returns the rule of a policy, compiled once. */
export function toRule (policy: Policy): Rule {
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

/** Returns `args` or `now` if a condition uses it, which rules with the decision `hide` must not do; else undefined. */
export const variablePreventingHide = ({ variables }: Condition): string | undefined =>
  ['args', 'now'].find((name) => variables.has(name))

/**
 * Evaluates a rule.
 * @returns undefined if the rule does not match; a rule that fails counts as a match, so that it denies the call
 */
export function evaluateRule (rule: Rule, context: PolicyContext): Match | undefined {
  if (rule.condition === undefined) return { rule, problem: 'its condition is not valid' }
  try {
    return rule.condition.isTrue(context) ? { rule } : undefined
  } catch (error) {
    return { rule, problem: (error as Error).message }
  }
}

/** Returns the decision of a matching rule; a rule that failed denies. */
export const decisionOf = ({ rule, problem }: Match): Policy['then'] =>
  problem === undefined ? rule.policy.then : 'deny'

/** Evaluates the fixed rules, and returns the rules for calls of the item by the caller in `context`. */
export function rulesOfItem (rules: readonly Rule[], context: PolicyContext): RulesOfItem {
  const steps: Array<RulesOfItem['steps'][number]> = []
  let hasFailed = false
  for (const rule of rules) {
    const match = rule.isFixed ? evaluateRule(rule, context) : undefined
    if (rule.isFixed && match === undefined) continue
    steps.push({ rule, match })
    hasFailed ||= match?.problem !== undefined
    if (match === undefined || rule.isObserved) continue
    return { hiding: decisionOf(match) === 'hide' ? match : undefined, steps, hasFailed }
  }
  return { hiding: undefined, steps, hasFailed }
}

/**
 * Returns the match of the rule that hides an item from lists; undefined if the item is listed.
 * @param rules fixed rules, in order
 */
export function findHidingMatch (rules: readonly Rule[], context: PolicyContext): Match | undefined {
  for (const rule of rules) {
    const match = evaluateRule(rule, context)
    if (match !== undefined) return decisionOf(match) === 'hide' ? match : undefined
  }
  return undefined
}
