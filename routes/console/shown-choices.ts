import { type Form, filterByText, formFieldText } from './page.ts'

/** The part of a long list of choices that a form shows as checkboxes. */
interface ShownChoices {
  readonly names: readonly string[]
  /** The selected names that are not shown; hidden fields keep them. */
  readonly kept: readonly string[]
  /** The number of matching names that are not shown. */
  readonly rest: number
}

/** Max number of choices that a form shows. */
export const maxShownChoices = 50

/** Returns the choices that match a search, selected ones first. */
export function shownChoicesOf (all: readonly string[], chosen: ReadonlySet<string>, term: string): ShownChoices {
  const matching = filterByText(all, term, (name) => [name])
  const ordered = [...matching.filter((name) => chosen.has(name)), ...matching.filter((name) => !chosen.has(name))]
  const names = ordered.slice(0, maxShownChoices)
  const shown = new Set(names)
  return {
    names,
    kept: all.filter((name) => chosen.has(name) && !shown.has(name)),
    rest: ordered.length - names.length
  }
}

/**
 * Whether a form was submitted to show other choices rather than to be saved: by the buttons for that, or by Enter in
 * the search field.
 */
export const asksForOtherChoices = (form: Form): boolean =>
  /^(?:find$|open:)/.test(formFieldText(form.do)) || formFieldText(form.find) !== formFieldText(form.found)
