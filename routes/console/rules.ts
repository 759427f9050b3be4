import type { FastifyPluginAsync } from 'fastify'
import { ApiError, type PageData } from '../../plugins/management/index.ts'
import type { Policy, PolicyTestResult } from '../../schemas/policies.ts'
import { type Form, noticeOf, pagesOf, textOf, type Visit } from './page.ts'

const decisions = [
  { value: 'deny', text: 'Deny it' },
  { value: 'ask', text: 'Ask a person' },
  { value: 'hide', text: 'Hide the item' },
  { value: 'allow', text: 'Allow it' }
]
const modes = [{ value: 'enforce', text: 'Decide' }, { value: 'observe', text: 'Only record what it would decide' }]
const words = { allow: 'allows', deny: 'denies', ask: 'asks', hide: 'hides' } as const

/** Pages: policies in their order, with the test of a call beside them. */
const routes: FastifyPluginAsync = async (app) => {
  const { base, api } = app.kit
  const { page, form } = pagesOf(app)
  const pathOf = (id: string): string => `/rules/${encodeURIComponent(id)}`
  const policies = async ({ request }: Pick<Visit, 'request'>): Promise<readonly Policy[]> =>
    (await api.ask(request, 'GET', '/policies')).data as readonly Policy[]
  const one = async ({ request, params: { id = '' } }: Visit): Promise<Policy> =>
    (await api.ask(request, 'GET', `/policies/${encodeURIComponent(id)}`)).data as Policy

  page('rules', {
    title: 'Rules', isInNav: true, watch: () => app.policies.entries.list()
  }, async (visit) => {
    const { username = '', server = '', tool = '', arguments: args = '' } = visit.query
    const all = await policies(visit)
    return {
      live: {},
      rows: all.map((policy, at) => rowOf(`${base}${pathOf(policy.id)}`, policy, at, all.length)),
      users: app.users.list().map((user) => user.username),
      asked: { username, server, tool, arguments: args },
      tested: tool === '' ? undefined : await tested(visit, { username, server, tool, arguments: args })
    }
  })

  /** The result of the test of a call, or why there is none. */
  const tested = async (
    { request }: Visit, { arguments: text, username, ...call }: Record<string, string>
  ): Promise<object> => {
    try {
      const args: unknown = text === undefined || text.trim() === '' ? {} : JSON.parse(text)
      const body = { ...call, principal: { username }, arguments: args }
      const { data } = await api.ask(request, 'POST', '/policies/test', body)
      const { decision, policy, reason, observed = [] } = data as PolicyTestResult
      const others = observed.map((each) => `${each.name} ${words[each.decision]}`)
      return {
        decision,
        text: policy === null
          ? 'No policy decides: the call is made.'
          : `${policy.name} ${words[decision]}. ${reason}.`,
        under: others.length === 0 ? undefined : `Only observed: ${others.join(', ')}.`
      }
    } catch (error) {
      if (error instanceof ApiError || error instanceof SyntaxError) return { decision: 'error', text: error.message }
      throw error
    }
  }

  const crumbs = [{ label: 'Rules', href: `${base}/rules` }]
  const formOf = (values: Partial<Policy>): Pick<PageData, string> => ({
    crumbs,
    cancel: `${base}/rules`,
    fields: [
      { name: 'name', label: 'Name', required: true, value: values.name },
      {
        name: 'when',
        label: 'When',
        type: 'textarea',
        rows: 4,
        required: true,
        value: values.when,
        hint: 'In CEL, over principal, tool, args, route and now: ' +
          'tool.annotations.destructiveHint && !principal.isAdmin'
      },
      { name: 'then', label: 'Then', type: 'select', options: optionsOf(decisions, values.then) },
      { name: 'mode', label: 'Effect', type: 'select', options: optionsOf(modes, values.mode) },
      {
        name: 'approvers',
        label: 'Approvers',
        value: values.approvers?.join(', '),
        hint: 'Of a rule that asks: usernames, with a comma between them. ' +
          'Without them, the client of the caller is asked.'
      },
      { name: 'message', label: 'Message', value: values.message, hint: 'A sentence for the caller.' }
    ]
  })
  const added = {
    ...formOf({}),
    title: 'Add a rule',
    lead: 'It comes after the others.',
    action: `${base}/rules`,
    submit: 'Add the rule'
  }
  page('form', { title: added.title, path: '/rules/new' }, () => added)
  form('/rules', { effect: 'change', again: () => ({ page: 'form', data: added }) }, async ({ request, form: sent }) =>
    ({ to: '/rules', notice: noticeOf(await api.ask(request, 'POST', '/policies', toPolicy(sent))) }))

  const changed = async (visit: Visit): Promise<PageData> => {
    const policy = await one(visit)
    const path = `${base}${pathOf(policy.id)}`
    return {
      ...formOf(policy),
      title: policy.name,
      lead: undefined,
      action: path,
      submit: 'Save',
      buttons: [{ label: 'Remove', href: `${path}/remove`, method: 'get', isDanger: true, icon: 'trash-2' }]
    }
  }
  page('form', { title: 'Rule', path: '/rules/:id' }, changed)
  form('/rules/:id', {
    effect: 'change', again: async (visit) => ({ page: 'form', data: await changed(visit) })
  }, async (visit) => {
    const { enabled } = await one(visit)
    const body = { ...toPolicy(visit.form), enabled }
    const answer = await api.ask(visit.request, 'PUT', `/policies/${visit.params.id ?? ''}`, body)
    return { to: '/rules', notice: noticeOf(answer) }
  })
  form('/rules/:id/toggle', { effect: 'change' }, async (visit) => {
    const { id, ...policy } = await one(visit)
    const body = { ...policy, enabled: textOf(visit.form.enabled) === 'true' }
    return { to: '/rules', notice: noticeOf(await api.ask(visit.request, 'PUT', `/policies/${id}`, body)) }
  })
  form('/rules/:id/move', { effect: 'change' }, async (visit) => {
    const ids = (await policies(visit)).map(({ id }) => id)
    const from = ids.indexOf(visit.params.id ?? '')
    const [moved] = from === -1 ? [] : ids.splice(from, 1)
    if (moved !== undefined) ids.splice(Math.max(0, from + (textOf(visit.form.by) === 'up' ? -1 : 1)), 0, moved)
    return { to: '/rules', notice: noticeOf(await api.ask(visit.request, 'PUT', '/policies/order', { ids })) }
  })
  page('confirm', { title: 'Remove', path: '/rules/:id/remove' }, async (visit) => {
    const { id, name } = await one(visit)
    return {
      title: `Remove ${name}?`,
      subject: name,
      crumbs,
      consequences: ['The rule itself: it decides about no call any more.'],
      confirm: { label: `Remove ${name}`, href: `${base}${pathOf(id)}/remove`, method: 'post' },
      cancel: `${base}${pathOf(id)}`
    }
  })
  form('/rules/:id/remove', { effect: 'change' }, async ({ request, params: { id = '' } }) =>
    ({ to: '/rules', notice: noticeOf(await api.ask(request, 'DELETE', `/policies/${encodeURIComponent(id)}`)) }))
}
export default routes

const optionsOf = (all: ReadonlyArray<{ value: string, text: string }>, chosen: string | undefined): object[] =>
  all.map(({ value, text }) => ({ value, text, isChosen: value === chosen }))

function rowOf (
  href: string, { name, when, then: decision, mode, enabled, approvers = [] }: Policy, at: number, count: number
): object {
  const post = (path: string, label: string, fields: object, isDisabled = false): object =>
    ({ label, href: `${href}/${path}`, method: 'post', fields, isDisabled })
  const tags = [...enabled === false ? ['off'] : [], ...mode === 'observe' ? ['only observes'] : []]
  return {
    isFaint: enabled === false,
    cells: [
      { text: name, href, under: when, tags },
      { text: words[decision], under: approvers.length === 0 ? undefined : approvers.join(', ') },
      {
        actions: [
          post('move', 'Up', { by: 'up' }, at === 0),
          post('move', 'Down', { by: 'down' }, at === count - 1),
          post('toggle', enabled === false ? 'Turn on' : 'Turn off', { enabled: String(enabled === false) })
        ]
      }
    ]
  }
}

/** The policy that a form describes. An empty optional field is omitted. */
function toPolicy (sent: Form): object {
  const approvers = textOf(sent.approvers).split(',').map((each) => each.trim()).filter((each) => each !== '')
  const message = textOf(sent.message).trim()
  return {
    name: textOf(sent.name),
    when: textOf(sent.when).replaceAll('\r\n', '\n').trim(),
    then: textOf(sent.then),
    mode: textOf(sent.mode),
    ...approvers.length > 0 && { approvers },
    ...message !== '' && { message }
  }
}
