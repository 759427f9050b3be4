import { parseServerEntries } from '../../plugins/management/index.ts'
import { toAuthor } from '../../plugins/settings/index.ts'
import {
  BatchWriteFailure, BatchWriteResult, EnabledUpdate, NewServer, NewServers, ServerParams, ServerRecord,
  ServerTestResult, ServerToTest, ServerUpdate
} from '../../schemas/server-api.ts'
import { abortSignalOf } from '../caller.ts'
import { revisionOfServerConfig } from '../entity-tag.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { type ApiHandlerContext, createApiRouter } from './endpoint.ts'
import { serializeRecords } from './records.ts'

/** Routes that list, read, add, change, enable, disable, test, reconnect and remove servers, or log out of them. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.addHook('preSerialization', serializeRecords)
  const { servers } = app
  const api = createApiRouter(app, 'Servers')
  const managed = {
    params: ServerParams,
    before: ({ principal, params }: Pick<ApiHandlerContext<typeof ServerParams>, 'principal' | 'params'>) => {
      servers.assertCanManage(principal, params.name)
    }
  }
  const revision = ({ principal, params }: Pick<ApiHandlerContext<typeof ServerParams>, 'principal' | 'params'>) =>
    revisionOfServerConfig(servers.get(principal, params.name).config)

  api.list('/servers', {
    summary: 'List the servers that you may see', item: ServerRecord, key: 'name'
  }, async ({ principal }) => await servers.listWithLoginUrls(principal))

  api.post('/servers', {
    summary: 'Add a server',
    description: 'The response does not wait for the server, which connects in the background.',
    body: NewServer,
    data: ServerRecord
  }, async ({ principal, body: { name, config } }) => {
    const data = await servers.create(principal, name, config)
    const message = `Server ${JSON.stringify(name)} was added${data.enabled ? ' and is connecting' : ', disabled'}`
    return { data, message, warnings: servers.warningsAbout(principal, name, config) }
  })

  api.post('/servers/batch', {
    summary: 'Add many servers',
    description:
      'Each entry is stored independently: 200 if all were stored, 207 if some were, 400 if none was. The ' +
      'configuration file of an MCP client is accepted as it is: members in its own notation are converted, and ' +
      '`warnings` names those without effect.',
    body: NewServers,
    response: { 200: BatchWriteResult, 207: BatchWriteResult, 400: BatchWriteFailure }
  }, async ({ principal, body }) => await servers.addBatch(principal, parseServerEntries(body)))

  api.post('/servers/test', {
    summary: 'Test a server before it is stored',
    description:
      'Connects once with the config, lists the items and disconnects; the response contains the items, or the ' +
      'reason why the server does not connect. A server that requires a login (OAuth) has the status ' +
      '`oauth_required`. No login is started, since that requires the stored server, whose record then contains the ' +
      'address to open. Nothing is stored. The rules for storing a server apply.',
    body: ServerToTest,
    data: ServerTestResult
  }, async ({ principal, body: { name, config }, reply }) =>
    await servers.test(principal, name, config as Record<string, unknown>, abortSignalOf(reply)))

  api.get('/servers/:name', {
    summary: 'Get a server, with its items', params: ServerParams, data: ServerRecord, revision
  }, async (call) => ({ data: await servers.getWithLoginUrl(call.principal, call.params.name) }))

  api.put('/servers/:name', {
    ...managed,
    summary: "Replace a server's config",
    description:
      'Owner, visibility, `enabled` and overrides stay unchanged unless the new config contains them. A mask in the ' +
      'place of a secret keeps the stored secret.',
    body: ServerUpdate,
    data: ServerRecord,
    revision
  }, async ({ principal, params, body: { config, newName } }) => {
    const data = await servers.update(principal, params.name, config, newName)
    const warnings = servers.warningsAbout(principal, data.name, config, params.name)
    return { data, message: 'The server was updated', warnings }
  })

  api.delete('/servers/:name', { ...managed, summary: 'Remove a server' }, async ({ principal, params }) => {
    await servers.remove(principal, params.name)
    return { message: 'The server was removed' }
  })

  api.post('/servers/:name/toggle', {
    ...managed,
    summary: 'Enable or disable a server',
    body: EnabledUpdate,
    data: ServerRecord
  }, async ({ principal, params, body: { enabled } }) => ({
    data: await servers.setEnabled(principal, params.name, enabled),
    message: enabled ? 'The server was enabled' : 'The server was disabled'
  }))

  api.post('/servers/:name/reload', {
    ...managed, summary: 'Reconnect a server', data: ServerRecord
  }, async ({ principal, params }) => {
    const data = await servers.reload(principal, params.name)
    const message = data.status === 'disabled'
      ? 'The server is disabled: enable it to connect it'
      : 'The server is reconnecting'
    return { data, message }
  })

  api.delete('/servers/:name/oauth', {
    summary: 'Log out of a server',
    description: 'Ends the login that the gateway uses at the server: the shared one or, with `isolation: user`, ' +
      'your own.',
    params: ServerParams,
    before: ({ principal, params }) => { servers.assertCanLogOut(principal, params.name) }
  }, async ({ principal, params: { name } }) => {
    const existed = await servers.logOut(principal, name)
    if (existed) app.audit.addChange(toAuthor(principal), { entity: 'login', name, before: { server: name } })
    return { message: existed ? 'The login was ended' : 'There was no login' }
  })
}
export default routes
