import type { Catalogue } from '../../../protocol/lists.ts'
import type { PolicyContext, PrincipalFacts } from './cel.ts'
import { findItem, namesOf, templatesFor, toContext, toToolFacts, type Subject } from './facts.ts'
import { decide, findHiding, strictestOf, type Ruleset, type Verdict } from './ruleset.ts'

/** A call as conditions see it, made or only tested. */
export interface DecidedCall {
  readonly subject: Subject
  readonly principal: PrincipalFacts
  readonly args: unknown
  /** The arguments as JSON text. */
  readonly argsText: () => string
  readonly route: string
  readonly now: Date
}

/**
 * Decides about a call, by all names that count for its item; the strictest verdict counts.
 * @param catalogue of the server, for this caller; undefined: it is not known
 */
export function decideAbout (ruleset: Ruleset, call: DecidedCall, catalogue: Catalogue | undefined): Verdict {
  const { subject, principal, args, argsText, route, now } = call
  const contextOf = (name: string): PolicyContext => {
    const tool = toToolFacts({ ...subject, name }, findItem(catalogue, subject.kind, name))
    return toContext({ principal, route, now, tool }, args, argsText)
  }
  const names = namesOf(catalogue, subject)
  const others = names.slice(1).map((name) => decide(ruleset, contextOf(name)))
  const verdict = strictestOf([decide(ruleset, contextOf(subject.name)), ...others])
  if (verdict.match !== undefined || ruleset.listRules.length === 0) return verdict
  // Who does not see a template has no use of what it makes, unless a rule names that.
  const hiding = templatesFor(catalogue, subject, names)
    .map((name) => findHiding(ruleset.listRules, contextOf(name))).find((match) => match !== undefined)
  return hiding === undefined ? verdict : { ...verdict, decision: 'hide', match: hiding }
}
