import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { canManage, isIdentifiedByUri, type ItemKind, itemKinds, type Principal } from '../../plugins/settings/index.ts'
import { revisionOfRecord } from '../entity-tag.ts'
import {
  mcpEndpointUrl, filterByText, type SubmittedForm, formFieldValues, noticeOfAnswer, createPageRouter,
  createRemoveAction, revisionIn, formFieldText, type Visit
} from './page.ts'
import { asksForOtherChoices, maxShownChoices, shownChoicesOf } from './shown-choices.ts'
import { listedItemsOf } from './server-head.ts'
import { paginate } from './lists.ts'
import { type ShownServer, stateOf } from './server-states.ts'

type ShownGroup = ReturnType<FastifyInstance['groups']['listWithSelectors']>[number]
type Member = Exclude<ShownGroup['servers'][number], string>

/** The pages that list, create, change and remove groups. A group's page also shows the resulting tools. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit, groups } = app
  const { base, api } = kit
  const { page, edit, removal, submit } = createPageRouter(app)
  const pathOf = (name: string): string => `/groups/${encodeURIComponent(name)}`

  page('groups', {
    title: 'Groups',
    isInNav: true,
    watch: (principal) => groups.listWithSelectors(principal)
  }, ({ principal, query: { q = '', page: number = '1' } }) => {
    const chosen = filterByText(groups.listWithSelectors(principal), q, ({ name, description }) => [name, description])
    const { items, pages } = paginate(chosen, `${base}/groups`, { q, page: number })
    return {
      live: {},
      q,
      pages,
      items: items.map((group) => {
        const { tools, tokens } = kit.costs.ofGroup(principal, group)
        const href = `${base}${pathOf(group.id)}`
        return {
          name: group.name,
          href,
          description: group.description,
          servers: group.servers.map((each) => typeof each === 'string' ? each : each.name),
          tools,
          tokens,
          owner: group.owner,
          actions: mayManage(principal, group) ? [createRemoveAction(href)] : []
        }
      })
    }
  })

  const groupIn = ({ form }: Visit, stored: ShownGroup['servers']): object => ({
    name: formFieldText(form.name).trim(),
    description: formFieldText(form.description),
    servers: membersIn(form, toChosenMembers(stored))
  })

  const newGroupPage = async (visit: Visit): Promise<{ title: string, [member: string]: unknown }> => ({
    title: 'Create a group',
    group: { name: '', href: `${base}/groups/new`, isNew: true },
    ...membersOf(app, visit, [])
  })
  /** Responds with the submitted form, which now offers other servers to choose from. */
  const showAgain = async (visit: Visit, data: Promise<{ title: string }>): Promise<undefined> => {
    kit.renderer.send(visit.reply, 'group', { ...await data, values: visit.form })
  }
  edit('group', { title: 'Create a group', path: '/groups/new' }, newGroupPage, async (visit) => {
    const { request, form: sent } = visit
    if (asksForOtherChoices(sent)) return await showAgain(visit, newGroupPage(visit))
    const done = await api.ask(request, 'POST', '/groups', groupIn(visit, []))
    const { id } = done.data as { id: string }
    return { to: pathOf(id), notice: noticeOfAnswer(done) }
  })

  const groupPage = async (visit: Visit): Promise<{ title: string, [member: string]: unknown }> => {
    const { principal, request, params: { id = '' } } = visit
    const group = groups.get(principal, id)
    const { form } = visit
    const { tools, tokens, names } = kit.costs.ofGroup(principal, group)
    const address = encodeURIComponent(group.name)
    return {
      title: group.name,
      group: {
        name: group.name,
        description: group.description,
        href: `${base}${pathOf(group.id)}`,
        route: group.name,
        endpoint: `${mcpEndpointUrl(app, request)}/${address}`,
        isNew: false,
        isOwn: mayManage(principal, group)
      },
      ...membersOf(app, visit, group.servers),
      // If the form is shown again with other servers, it keeps the revision from when it was first shown.
      revision: asksForOtherChoices(form) ? revisionIn(form) : revisionOfRecord(group),
      stored: JSON.stringify(
        { name: group.name, description: group.description, servers: group.servers }, undefined, 2
      ),
      seen: { tools, tokens, names: names.slice(0, 100) }
    }
  }
  edit('group', { title: 'Group', path: '/groups/:id' }, groupPage, async (visit) => asksForOtherChoices(visit.form)
    ? await showAgain(visit, groupPage(visit))
    : await submit(visit, '/groups/:id', 'PUT', '/groups/:id',
      groupIn(visit, groups.get(visit.principal, visit.params.id ?? '').servers)))

  removal('/groups/:id', '/groups', ({ principal, params: { id = '' } }) => {
    const { name, id: uuid } = groups.get(principal, id)
    // A key names a group by its name or its id.
    const scoped = app.keys.list(principal)
      .filter(({ allowedGroups }) => allowedGroups?.some((each) => each === name || each === uuid))
    return {
      name,
      crumbs: [{ label: 'Groups', href: `${base}/groups` }, { label: name, href: `${base}${pathOf(id)}` }],
      consequences: [
        'Its address stops working: agents that use it get an error.',
        ...scoped.map((key) => `The key ${JSON.stringify(key.name)} no longer opens it.`)
      ],
      keeps: 'The servers in it stay.',
      cancel: `${base}${pathOf(id)}`
    }
  })
}
export default routes

const mayManage = ({ isAdmin, username }: Principal, { owner }: ShownGroup): boolean => isAdmin || owner === username

type ChosenMember = Partial<Member> & { readonly name: string }

/** Returns stored members without `all`, which is the default. */
const toChosenMembers = (members: ShownGroup['servers']): ChosenMember[] => members.map((each) => {
  if (typeof each === 'string') return { name: each }
  const all = itemKinds.filter((kind) => each[kind] === 'all')
  return { ...each, ...Object.fromEntries(all.map((kind) => [kind, undefined])) }
})

/**
 * Returns the data of a group's form: the servers to choose from, with the items of each open server; and hidden
 * fields for the selected servers that are not shown.
 */
function membersOf (
  { servers, settings }: FastifyInstance, { principal, form }: Visit, members: ShownGroup['servers']
): object {
  const stored = toChosenMembers(members)
  const all = new Map(servers.list(principal).map((server) => [server.name, server]))
  // A submitted form is shown again with its own selection, not with the stored one.
  const selection = form.name === undefined ? stored : membersIn(form, stored)
  const chosen = new Map(selection.map((each) => [each.name, each]))
  const find = formFieldText(form.find)
  const choices = [...new Set([...all.keys(), ...stored.map(({ name }) => name)])]
  const { names, kept, rest } = shownChoicesOf(choices, new Set(chosen.keys()), find)
  return {
    find,
    rest,
    isLong: choices.length > maxShownChoices,
    kept: kept.flatMap((name) => fieldsOf(chosen.get(name) ?? { name })),
    members: names.map((name) => {
      const server = all.get(name)
      const member = chosen.get(name)
      if (!server) {
        return { name, isChosen: member !== undefined, isOpen: false, state: 'gone', isManaged: false, kinds: [] }
      }
      const config = settings.current.servers.get(name)
      const isOpen = formFieldText(form.do) === `open:${name}` ||
        itemKinds.some((kind) => form[`has:${kind}:${name}`] !== undefined || Array.isArray(member?.[kind]))
      return {
        name,
        isChosen: member !== undefined || formFieldText(form.do) === `open:${name}`,
        isOpen,
        state: stateOf(server),
        isManaged: config !== undefined && canManage(principal, config),
        kinds: itemKinds.map((kind) => choiceOf(server, kind, member, isOpen))
      }
    })
  }
}

/**
 * Returns the data of the selection among a server's items of one kind.
 * @param withItems whether the form lists the items
 */
function choiceOf (
  server: ShownServer, kind: ItemKind, member: ChosenMember | undefined, withItems: boolean
): object {
  const selected = member?.[kind]
  const isAll = !Array.isArray(selected)
  const listed = withItems
    ? listedItemsOf(server, kind).map(({ name = '', uri }) => isIdentifiedByUri(kind) ? uri ?? name : name)
    : []
  const total = server[kind].length
  // Selected items stay in the form even if the server does not list them now.
  const keys = [...new Set([...listed, ...withItems && Array.isArray(selected) ? selected : []])]
  return {
    kind,
    title: kind,
    chosen: member === undefined ? 0 : isAll ? total : selected.length,
    total,
    isAll,
    items: keys.map((key) => ({ key, isChosen: !isAll && selected.includes(key) }))
  }
}

/** Returns the hidden form fields for a selected server and its selected items, which `membersIn` can read. */
const fieldsOf = (member: ChosenMember): Array<[name: string, value: string]> => [
  ['servers', member.name],
  ...itemKinds.flatMap((kind): Array<[string, string]> => {
    const selected = member[kind]
    if (!Array.isArray(selected)) return []
    const field = `${kind}:${member.name}`
    return [[`has:${field}`, 'true'], ...selected.map((key): [string, string] => [field, key])]
  })
]

/**
 * Returns the members in a submitted form. What the form does not show stays as stored: aliases, the order, and the
 * items of servers that list none now.
 */
function membersIn (form: SubmittedForm, stored: readonly ChosenMember[]): ChosenMember[] {
  const chosen = new Set(formFieldValues(form.servers))
  const former = new Map(stored.map((member) => [member.name, member]))
  const kept = [...former.keys()].filter((name) => chosen.has(name))
  return [...new Set([...kept, ...chosen])].map((name) => ({
    ...former.get(name),
    name,
    ...Object.fromEntries(itemKinds
      .filter((kind) => form[`has:${kind}:${name}`] !== undefined)
      .map((kind) => [kind, selectorIn(form, `${kind}:${name}`)]))
  }))
}

/** Returns the selected items of a server in a field; undefined if all items are selected. */
function selectorIn (form: SubmittedForm, field: string): string[] | undefined {
  const items = formFieldValues(form[field])
  // If the user ticked items while “All” was selected, only the ticked items count, even if “All” is still selected.
  const isAll = formFieldText(form[`all:${field}`]) === 'true' &&
    !(items.length > 0 && formFieldText(form[`was:${field}`]) === 'all')
  return isAll ? undefined : items
}
