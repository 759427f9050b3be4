import type { FastifyPluginAsync } from 'fastify'
import { canManageServer } from './server-head.ts'
import { createPageRouter, formFieldText } from './page.ts'
import { serverPageUrl } from './server-states.ts'

/** The prefix of the form fields that contain values. */
const fieldPrefix = 'values.'

/**
 * The page on which users enter the values that a server needs from each of them (`userVariables`). Managers of
 * the server also see which users have set values.
 */
const routes: FastifyPluginAsync = async (app) => {
  const { ownVariables, kit: { base } } = app
  const { form, edit, submit } = createPageRouter(app)
  const [path, stored] = ['/servers/:name', '/servers/:name/my-variables']

  edit('form', {
    title: 'My credentials', path: `${path}/my-credentials`
  }, async ({ principal, params: { name = '' } }) => {
    const variables = await ownVariables.get(principal, name)
    const given = canManageServer(app, principal, name) ? await ownVariables.list(principal, name) : []
    const givers = given.map(({ username, names }) => `${username} (${names.join(', ')})`)
    const action = `${serverPageUrl(base, name)}/my-credentials`
    return {
      title: `Your credentials for ${name}`,
      lead: 'Your calls to this server use these. They are stored encrypted and never shown.' +
        (givers.length === 0 ? '' : ` Given by: ${givers.join(', ')}.`),
      crumbs: [{ label: 'Servers', href: `${base}/servers` }, { label: name, href: serverPageUrl(base, name) }],
      buttons: variables.some(({ isSet }) => isSet)
        ? [{ label: 'Remove mine', href: `${action}/forget`, method: 'post', isDanger: true }]
        : [],
      action,
      cancel: serverPageUrl(base, name),
      submit: 'Save',
      fields: variables.map(({ name: variable, title = variable, description, secret, required, isSet }) => ({
        name: `${fieldPrefix}${variable}`,
        label: required ? title : `${title} (optional)`,
        hint: [description, isSet ? 'Stored. Leave empty to keep it.' : undefined].filter(Boolean).join(' '),
        type: secret ? 'password' : 'text',
        required: required && !isSet
      }))
    }
  }, async (visit) => {
    const values = Object.fromEntries(Object.entries(visit.form).flatMap(([key, value]) =>
      key.startsWith(fieldPrefix) && formFieldText(value) !== ''
        ? [[key.slice(fieldPrefix.length), formFieldText(value)]]
        : []))
    return await submit(visit, path, 'PUT', stored, { values })
  })

  form(`${path}/my-credentials/forget`, { effect: 'change' }, async (visit) =>
    await submit(visit, path, 'DELETE', stored))
}
export default routes
