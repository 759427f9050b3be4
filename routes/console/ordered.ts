import type { FastifyInstance } from 'fastify'
import type { Notice } from '../../plugins/management/index.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import {
  parseEnabledUpdate, type SubmittedForm, createPageRouter, createRemoveAction, formFieldText, createToggleAction,
  type Visit
} from './page.ts'

/** An entry of a list in which order can matter: a policy, a guard or a quota. */
interface Entry { readonly id: string, readonly name: string, readonly enabled?: boolean }

/** The content of an entry's row in the list, apart from the name and the buttons. */
interface EntryRow {
  /** The servers, tools or callers to which the entry applies. */
  readonly about: string
  /** Whether `about` is an expression, shown in a monospaced font. */
  readonly isExpression?: boolean
  /** The effect of the entry; `under` is shown in small letters. */
  readonly effect: { readonly text: string, readonly under?: string }
  readonly tags?: readonly string[]
}

/** The properties of the pages for one kind of entry, such as guards. */
interface OrderedPages<Item extends Entry> {
  /** The plural noun for the entries, which is also the name and the path of the page, such as `guards`. */
  readonly page: string
  /** The path of the collection below `/api`. */
  readonly path: string
  readonly entries: { readonly list: () => readonly Item[], readonly get: (id: string) => Item }
  /** Whether the order of the entries matters, so that the page has buttons to move them. Default: true. */
  readonly isOrdered?: boolean
  /** What an entry does, as a verb phrase that completes "The guard no longer …", such as `checks calls`. */
  readonly verbPhrase: string
  readonly rowOf: (entry: Item) => EntryRow
  /** Returns the fields of an entry's form. @param entry the entry; an empty object for a new one */
  readonly fieldsOf: (entry: Partial<Item>) => object[]
  /** Converts a submitted form to a request body for the API. @param former the entry to replace, if any */
  readonly toBody: (form: SubmittedForm, former?: Item) => object
}

/**
 * Adds the pages and forms that list, add, change, enable, disable, move and remove the entries of one kind.
 * @param more returns further data for the page with the list
 */
export function addOrderedEntityPages<Item extends Entry> (
  app: FastifyInstance,
  { page: name, path, entries, isOrdered = true, verbPhrase, rowOf, fieldsOf, toBody }: OrderedPages<Item>,
  more: (visit: Visit) => object | Promise<object> = () => ({})
): void {
  const { base } = app.kit
  const { page, form, edit, removal, submit } = createPageRouter(app)
  const [title, noun] = [name.charAt(0).toUpperCase() + name.slice(1), name.replace(/s$/, '')]
  const list = `/${name}`
  const entryOf = ({ params: { id = '' } }: Pick<Visit, 'params'>): Item => entries.get(id)
  const hrefOf = (id: string): string => `${base}${list}/${encodeURIComponent(id)}`
  /** Sends a change to the API. @param rest the part of the path that follows the path of the collection */
  const ask = async (
    visit: Visit, method: 'POST' | 'PUT' | 'DELETE', rest: string, body?: object
  ): Promise<{ to: string, notice: Notice }> => {
    const { to, notice } = await submit(visit, list, method, `${path}${rest}`, body)
    return { to, notice: withNoun(noun, notice) }
  }

  page(name, { title, isInNav: true, watch: () => entries.list() }, async (visit) => {
    const all = entries.list()
    return {
      live: {},
      addHref: `${base}${list}/new`,
      isOrdered,
      rows: all.map((entry, at) => toRow(hrefOf(entry.id), entry, rowOf(entry), isOrdered && [
        { label: 'Up', by: 'up', isDisabled: at === 0 },
        { label: 'Down', by: 'down', isDisabled: at === all.length - 1 }
      ])),
      ...await more(visit)
    }
  })

  const crumbs = [{ label: title, href: `${base}${list}` }]
  edit('form', { title: 'Add', path: `${list}/new`, action: list }, () => ({
    title: `Add a ${noun}`,
    ...isOrdered && { lead: 'It is added at the end of the list.' },
    crumbs,
    action: `${base}${list}`,
    cancel: `${base}${list}`,
    submit: `Add the ${noun}`,
    fields: fieldsOf({})
  }), async (visit) => await ask(visit, 'POST', '', toBody(visit.form)))

  edit('form', { title, path: `${list}/:id` }, (visit) => {
    const entry = entryOf(visit)
    const action = hrefOf(entry.id)
    return {
      title: entry.name,
      crumbs,
      revision: revisionOfRecord(entry),
      stored: JSON.stringify(entry, undefined, 2),
      action,
      cancel: `${base}${list}`,
      submit: 'Save',
      fields: fieldsOf(entry),
      buttons: [{ ...createRemoveAction(action), icon: 'trash-2' }]
    }
  }, async (visit) => {
    const entry = entryOf(visit)
    return await ask(visit, 'PUT', '/:id', { ...toBody(visit.form, entry), enabled: entry.enabled })
  })
  form(`${list}/:id/toggle`, { effect: 'change' }, async (visit) => {
    const { id: _id, ...entry } = entryOf(visit)
    return await ask(visit, 'PUT', '/:id', { ...entry, ...parseEnabledUpdate(visit.form) })
  })
  form(`${list}/:id/move`, { effect: 'change' }, async (visit) => {
    const ids = entries.list().map(({ id }) => id)
    const from = ids.indexOf(entryOf(visit).id)
    const to = Math.max(0, from + (formFieldText(visit.form.by) === 'up' ? -1 : 1))
    ids.splice(to, 0, ...ids.splice(from, 1))
    return await ask(visit, 'PUT', '/order', { ids })
  })
  removal(`${list}/:id`, list, (visit) => {
    const { id, name: entry } = entryOf(visit)
    return { name: entry, noun, crumbs, consequences: [`The ${noun} no longer ${verbPhrase}.`], cancel: hrefOf(id) }
  }, async (visit) => await ask(visit, 'DELETE', '/:id'))
}

/** Replaces the API's noun in a notice by the console's noun: a "policy" in the API is a "rule" in the console. */
const withNoun = (noun: string, { kind, text }: Notice): Notice =>
  ({ kind, text: text.replace(/^The \w+(?= was )/, `The ${noun}`) })

/**
 * Returns the row of an entry.
 * @param href the URL of the entry's page
 * @param moves the buttons that move the entry; false if it cannot be moved
 */
function toRow (
  href: string, { name, enabled = true }: Entry, { about, isExpression, effect, tags = [] }: EntryRow,
  moves: false | ReadonlyArray<{ readonly label: string, readonly by: string, readonly isDisabled: boolean }>
): object {
  return {
    isFaint: !enabled,
    cells: [
      { text: name, href, under: about, isUnderMono: isExpression, tags: [...enabled ? [] : ['off'], ...tags] },
      effect,
      {
        actions: [
          ...(moves || []).map(({ label, by, isDisabled }) =>
            ({ label, href: `${href}/move`, method: 'post', fields: { by }, isDisabled })),
          createToggleAction(href, enabled)
        ]
      }
    ]
  }
}

/** Returns the options of a select field. @param chosen the value of the selected option, if any */
export const toSelectOptions = (
  all: ReadonlyArray<{ readonly value: string, readonly text: string }>, chosen: string | undefined
): object[] => all.map(({ value, text }) => ({ value, text, isChosen: value === chosen }))
