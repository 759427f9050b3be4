import type { Catalogue } from '../../../protocol/lists.ts'
import type { PolicyContext, PrincipalFacts } from './cel.ts'
import { CallContext, findCatalogueItem, namesOf, templatesFor, toToolFacts, type Subject } from './facts.ts'
import { outcomesOf } from './known.ts'
import { decide, findHiding, strictestVerdict, type Outcomes, type Ruleset, type Verdict } from './ruleset.ts'

/** A call as conditions see it; either a real one or a test. */
export interface EvaluatedCall {
  readonly subject: Subject
  readonly principal: PrincipalFacts
  readonly args: unknown
  /** The arguments as JSON text. */
  readonly argsText: () => string
  readonly route: string
  readonly now: Date
}

/**
 * Decides about a call under all names of its item; the strictest verdict applies.
 * @param catalogue of the server, for this caller; undefined if unknown
 */
export function decideAbout (ruleset: Ruleset, call: EvaluatedCall, catalogue: Catalogue | undefined): Verdict {
  const { subject, principal, args, argsText, route, now } = call
  const forName = (name: string): [PolicyContext, Outcomes] => {
    const named = { ...subject, name }
    const item = findCatalogueItem(catalogue, subject.kind, name)
    const context = new CallContext({ principal, route, now, tool: toToolFacts(named, item) }, args, argsText)
    return [context, outcomesOf(ruleset, context, named, item)]
  }
  const names = namesOf(catalogue, subject)
  const others = names.slice(1).map((name) => decide(ruleset, ...forName(name)))
  const verdict = strictestVerdict([decide(ruleset, ...forName(subject.name)), ...others])
  if (verdict.match !== undefined || ruleset.listRules.length === 0) return verdict
  // A hidden template also hides the resources it matches, unless a rule names the resource.
  const hiding = templatesFor(catalogue, subject, names)
    .map((name) => findHiding(ruleset.listRules, ...forName(name))).find((match) => match !== undefined)
  return hiding === undefined ? verdict : { ...verdict, decision: 'hide', match: hiding }
}
