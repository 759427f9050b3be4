import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { Principal } from '../../plugins/settings/index.ts'
import { noticeOfAnswer, createPageRouter, formFieldText } from './page.ts'
import { serverPageUrl } from './server-states.ts'

/** The pages that rename and remove a server. Both list the consequences. */
const routes: FastifyPluginAsync = async (app) => {
  const { servers, kit: { api, base } } = app
  const { edit, removal } = createPageRouter(app)
  const pathOf = (name: string): string => `/servers/${encodeURIComponent(name)}`
  const crumbsOf = (name: string): object[] =>
    [{ label: 'Servers', href: `${base}/servers` }, { label: name, href: serverPageUrl(base, name) }]

  edit('form', { title: 'Rename', path: '/servers/:name/rename' }, ({ principal, params: { name = '' } }) => {
    servers.assertCanManage(principal, name)
    return {
      title: `Rename ${name}`,
      lead: 'Its configuration, switches and owner stay.',
      crumbs: crumbsOf(name),
      action: `${serverPageUrl(base, name)}/rename`,
      cancel: `${serverPageUrl(base, name)}/configuration`,
      submit: 'Rename',
      fields: [{ name: 'newName', label: 'New name', value: name, required: true }],
      consequences: renameConsequences(app, principal, name)
    }
  }, async ({ principal, request, params: { name = '' }, form: sent }) => {
    const newName = formFieldText(sent.newName).trim()
    const { config } = servers.get(principal, name)
    const done = await api.ask(request, 'PUT', pathOf(name), { config, newName })
    return { to: pathOf(newName), notice: noticeOfAnswer(done) }
  })

  removal('/servers/:name', '/servers', ({ principal, params: { name = '' } }) => {
    servers.assertCanManage(principal, name)
    return {
      name,
      crumbs: crumbsOf(name),
      consequences: removalConsequences(app, principal, name),
      keeps: 'Its recorded calls stay.',
      cancel: serverPageUrl(base, name)
    }
  })
}
export default routes

/** Returns the names of visible groups and keys that refer to a server, and whether the server uses logins (OAuth). */
function usesOf (
  { groups, keys, upstreams }: FastifyInstance, principal: Principal, name: string
): { groups: string[], keys: string[], hasLogins: boolean } {
  return {
    groups: groups.list(principal).filter(({ servers }) =>
      servers.some((member) => (typeof member === 'string' ? member : member.name) === name))
      .map((group) => JSON.stringify(group.name)),
    keys: keys.list(principal).filter(({ allowedServers }) => allowedServers?.includes(name))
      .map((key) => JSON.stringify(key.name)),
    hasLogins: upstreams.get(name)?.login !== undefined
  }
}

function removalConsequences (app: FastifyInstance, principal: Principal, name: string): string[] {
  const uses = usesOf(app, principal, name)
  return [
    'Its configuration is removed, including the switches and descriptions set here.',
    'Its connection closes: calls in progress end with an error.',
    ...uses.groups.map((group) => `The group ${group} no longer contains it.`),
    ...uses.keys.map((key) => `The key ${key} no longer opens it.`),
    ...uses.hasLogins ? ['Logins at it are removed.'] : []
  ]
}

function renameConsequences (app: FastifyInstance, principal: Principal, name: string): string[] {
  const uses = usesOf(app, principal, name)
  const separator = app.settings.current.system.nameSeparator ?? '-'
  return [
    `Agents get its tools and prompts under the new name; "${name}${separator}…" no longer works.`,
    `Clients that connect to /mcp/${name} need the new address.`,
    'It reconnects: calls in progress end with an error.',
    ...uses.groups.map((group) => `The group ${group} lists it under the new name.`),
    ...uses.keys.map((key) => `The key ${key} opens it under the new name.`),
    ...uses.hasLogins ? ['Logins at it end: their users must log in again.'] : [],
    'Recorded calls keep the old name.'
  ]
}
