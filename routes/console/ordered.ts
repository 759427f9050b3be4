import type { FastifyInstance } from 'fastify'
import type { Notice, PageData } from '../../plugins/management/index.ts'
import { revisionOf } from '../entity-tag.ts'
import { type Form, noticeOf, pagesOf, revisionIn, textOf, type Visit } from './page.ts'

interface Entry { readonly id: string, readonly name: string, readonly enabled?: boolean }

/** A row of the list, beside the name of the entry and its buttons. */
interface EntryRow {
  /** What the entry is about. */
  readonly about: string
  /** What it does; `under` in smaller letters. */
  readonly effect: { readonly text: string, readonly under?: string }
  readonly tags?: readonly string[]
}

interface OrderedPages<Item extends Entry> {
  /** The name and path of the page: the noun in the plural. */
  readonly page: string
  /** The path of the collection below `/api`. */
  readonly path: string
  readonly entries: { readonly list: () => readonly Item[], readonly get: (id: string) => Item }
  /** What a removed entry does no more, after "it". */
  readonly loss: string
  readonly rowOf: (entry: Item) => EntryRow
  /** The fields of the form. @param entry without members for a new one */
  readonly fieldsOf: (entry: Partial<Item>) => object[]
  /** The entry that a form describes, for the API. @param former the entry that it replaces */
  readonly toBody: (form: Form, former?: Item) => object
}

/**
 * Adds the pages of an entity whose entries apply in their order: list, add, change, turn on and off, move and remove.
 * @param more what its list shows in addition
 */
export function addOrderedPages<Item extends Entry> (
  app: FastifyInstance, { page: name, path, entries, loss, rowOf, fieldsOf, toBody }: OrderedPages<Item>,
  more: (visit: Visit) => object | Promise<object> = () => ({})
): void {
  const { base, api } = app.kit
  const { page, form } = pagesOf(app)
  const [title, noun] = [name.charAt(0).toUpperCase() + name.slice(1), name.replace(/s$/, '')]
  const list = `/${name}`
  const entryOf = ({ params: { id = '' } }: Pick<Visit, 'params'>): Item => entries.get(id)
  const below = (id: string): string => `/${encodeURIComponent(id)}`
  const pathOf = (id: string): string => `${list}${below(id)}`
  /** @param rest the path below that of the collection */
  const ask = async (
    { request, form: sent }: Visit, method: 'POST' | 'PUT' | 'DELETE', rest: string, body?: object
  ): Promise<{ to: string, notice: Notice }> => {
    const answer = await api.ask(request, method, `${path}${rest}`, body, revisionIn(sent))
    return { to: list, notice: inWordsOf(noun, noticeOf(answer)) }
  }

  page(name, { title, isInNav: true, watch: () => entries.list() }, async (visit) => {
    const all = entries.list()
    return {
      live: {},
      addHref: `${base}${list}/new`,
      rows: all.map((entry, at) => toRow(`${base}${pathOf(entry.id)}`, entry, rowOf(entry), at, all.length)),
      ...await more(visit)
    }
  })

  const crumbs = [{ label: title, href: `${base}${list}` }]
  const added = (): PageData => ({
    title: `Add a ${noun}`,
    lead: 'It is added at the end of the list.',
    crumbs,
    action: `${base}${list}`,
    cancel: `${base}${list}`,
    submit: `Add the ${noun}`,
    fields: fieldsOf({})
  })
  page('form', { title: 'Add', path: `${list}/new` }, added)
  form(list, { effect: 'change', again: () => ({ page: 'form', data: added() }) }, async (visit) =>
    await ask(visit, 'POST', '', toBody(visit.form)))

  const changed = (visit: Visit): PageData => {
    const entry = entryOf(visit)
    const action = `${base}${pathOf(entry.id)}`
    return {
      title: entry.name,
      crumbs,
      revision: revisionOf(entry),
      stored: JSON.stringify(entry, undefined, 2),
      action,
      cancel: `${base}${list}`,
      submit: 'Save',
      fields: fieldsOf(entry),
      buttons: [{ label: 'Remove', href: `${action}/remove`, method: 'get', isDanger: true, icon: 'trash-2' }]
    }
  }
  page('form', { title, path: `${list}/:id` }, changed)
  form(`${list}/:id`, {
    effect: 'change', again: (visit) => ({ page: 'form', data: changed(visit) })
  }, async (visit) => {
    const entry = entryOf(visit)
    return await ask(visit, 'PUT', below(entry.id), { ...toBody(visit.form, entry), enabled: entry.enabled })
  })
  form(`${list}/:id/toggle`, { effect: 'change' }, async (visit) => {
    const { id, ...entry } = entryOf(visit)
    return await ask(visit, 'PUT', below(id), { ...entry, enabled: textOf(visit.form.enabled) === 'true' })
  })
  form(`${list}/:id/move`, { effect: 'change' }, async (visit) => {
    const ids = entries.list().map(({ id }) => id)
    const from = ids.indexOf(entryOf(visit).id)
    const to = Math.max(0, from + (textOf(visit.form.by) === 'up' ? -1 : 1))
    ids.splice(to, 0, ...ids.splice(from, 1))
    return await ask(visit, 'PUT', '/order', { ids })
  })
  page('confirm', { title: 'Remove', path: `${list}/:id/remove` }, (visit) => {
    const { id, name: entry } = entryOf(visit)
    const subject = `the ${noun} ${entry}`
    return {
      title: `Remove ${subject}?`,
      subject,
      crumbs,
      consequences: [`The ${noun} no longer ${loss}.`],
      confirm: { label: `Remove the ${noun}`, href: `${base}${pathOf(id)}/remove`, method: 'post' },
      cancel: `${base}${pathOf(id)}`
    }
  })
  form(`${list}/:id/remove`, { effect: 'change' }, async (visit) =>
    await ask(visit, 'DELETE', below(entryOf(visit).id)))
}

/** A notice of the API, with the noun of the page: what the API calls a policy is a rule here. */
const inWordsOf = (noun: string, { kind, text }: Notice): Notice =>
  ({ kind, text: text.replace(/^The \w+(?= was )/, `The ${noun}`) })

/** @param href of the entry's page @param at its place among `count` */
function toRow (
  href: string, { name, enabled = true }: Entry, { about, effect, tags = [] }: EntryRow, at: number, count: number
): object {
  const post = (path: string, label: string, fields: object, isDisabled = false): object =>
    ({ label, href: `${href}/${path}`, method: 'post', fields, isDisabled })
  return {
    isFaint: !enabled,
    cells: [
      { text: name, href, under: about, tags: [...enabled ? [] : ['off'], ...tags] },
      effect,
      {
        actions: [
          post('move', 'Up', { by: 'up' }, at === 0),
          post('move', 'Down', { by: 'down' }, at === count - 1),
          post('toggle', enabled ? 'Turn off' : 'Turn on', { enabled: String(!enabled) })
        ]
      }
    ]
  }
}

/** The options of a field. @param chosen the value of the one that is chosen */
export const optionsOf = (
  all: ReadonlyArray<{ readonly value: string, readonly text: string }>, chosen: string | undefined
): object[] => all.map(({ value, text }) => ({ value, text, isChosen: value === chosen }))
