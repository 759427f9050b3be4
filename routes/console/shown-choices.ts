import { type SubmittedForm, filterByText, formFieldText } from './page.ts'

/** Which names of a long list a form shows as checkboxes. */
interface ShownChoices {
  readonly names: readonly string[]
  /** The selected names that are not shown. The form contains them as hidden fields. */
  readonly kept: readonly string[]
  /** The number of names that match the search but are not shown. */
  readonly rest: number
}

/** The max number of choices that a form shows. */
export const maxShownChoices = 50

/**
 * Returns which choices a form shows: the first `maxShownChoices` that match a search, selected ones first.
 * @param chosen the selected names
 * @param term the search term; all names match an empty term
 */
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
 * Whether a form was submitted to show other choices instead of being saved: with a button for this, or with Enter in
 * the search field.
 */
export const asksForOtherChoices = (form: SubmittedForm): boolean =>
  /^(?:find$|open:)/.test(formFieldText(form.do)) || formFieldText(form.find) !== formFieldText(form.found)
