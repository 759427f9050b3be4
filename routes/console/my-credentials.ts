import type { FastifyPluginAsync } from 'fastify'
import { canManageServer } from './server-head.ts'
import { noticeOf, pagesOf, textOf, type Visit } from './page.ts'
import { pageOf } from './states.ts'

/** The prefix of the fields with values. */
const field = 'values.'

/**
 * Page: the values that a server needs from the user (`userVariables`), and for users who manage the server, who has
 * set them.
 */
const routes: FastifyPluginAsync = async (app) => {
  const { ownVariables, kit: { api, base } } = app
  const { page, form } = pagesOf(app)
  const pathOf = (name: string): string => `/servers/${encodeURIComponent(name)}`

  const show = async ({ principal, params: { name = '' } }: Visit) => {
    const variables = await ownVariables.get(principal, name)
    const given = canManageServer(app, principal, name) ? await ownVariables.list(principal, name) : []
    const givers = given.map(({ username, names }) => `${username} (${names.join(', ')})`)
    const action = `${pageOf(base, name)}/my-credentials`
    return {
      title: `Your credentials for ${name}`,
      lead: 'Your calls to this server use these. They are stored encrypted and never shown.' +
        (givers.length === 0 ? '' : ` Given by: ${givers.join(', ')}.`),
      crumbs: [{ label: 'Servers', href: `${base}/servers` }, { label: name, href: pageOf(base, name) }],
      buttons: variables.some(({ isSet }) => isSet)
        ? [{ label: 'Remove mine', href: `${action}/forget`, method: 'post', isDanger: true }]
        : [],
      action,
      cancel: pageOf(base, name),
      submit: 'Save',
      fields: variables.map(({ name: variable, title = variable, description, secret, required, isSet }) => ({
        name: `${field}${variable}`,
        label: required ? title : `${title} (optional)`,
        hint: [description, isSet ? 'Stored. Leave empty to keep it.' : undefined].filter(Boolean).join(' '),
        type: secret ? 'password' : 'text',
        required: required && !isSet
      }))
    }
  }

  page('form', { title: 'My credentials', path: '/servers/:name/my-credentials' }, show)

  form('/servers/:name/my-credentials', {
    effect: 'change', again: async (visit) => ({ page: 'form', data: await show(visit) })
  }, async ({ request, params: { name = '' }, form: sent }) => {
    const values = Object.fromEntries(Object.entries(sent).flatMap(([key, value]) =>
      key.startsWith(field) && textOf(value) !== '' ? [[key.slice(field.length), textOf(value)]] : []))
    const done = await api.ask(request, 'PUT', `${pathOf(name)}/my-variables`, { values })
    return { to: pathOf(name), notice: noticeOf(done) }
  })

  form('/servers/:name/my-credentials/forget', { effect: 'change' }, async ({ request, params: { name = '' } }) =>
    ({ to: pathOf(name), notice: noticeOf(await api.ask(request, 'DELETE', `${pathOf(name)}/my-variables`)) }))
}
export default routes
