import { Type } from '@sinclair/typebox'
import type { onRequestHookHandler } from 'fastify'
import {
  BatchDone,
  BatchFailed,
  Done,
  NewServer,
  NewServers,
  PageQuery,
  PageOf,
  ServerName,
  ServerRecord,
  ServerTested,
  ServerToTest,
  ServerUpdate,
  Success,
  SuccessWithWarnings,
  Toggle
} from '../../schemas/api.ts'
import { serverEntries, type ServerTest } from '../../plugins/management/index.ts'
import { signalOf } from '../disconnect.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { page } from './page.ts'
import { authorOf, principalOf } from './principal.ts'
import { serializeRecords } from './records.ts'
import { succeeded } from './succeeded.ts'

const tags = ['Servers']

/** What a test has seen, and what to do next. */
function testMessage ({ connected, status, tools }: ServerTest, name: string | undefined): string {
  if (connected) return `It connects, and lists ${tools.length} tools`
  if (status !== 'oauth_required') return 'It does not connect'
  const first = name === undefined ? 'store it, and open' : 'open'
  return `It wants a login: ${first} the address that its record shows (oauth.authorizationUrl)`
}

/** Answers 404 or 403 before the body is validated (DECISIONS §1). */
const mustManage: onRequestHookHandler = (request, _reply, done) => {
  request.server.servers.mustManage(principalOf(request), (request.params as { name: string }).name)
  done()
}

/** The same for the login that the caller uses there. */
const mustHoldLogin: onRequestHookHandler = (request, _reply, done) => {
  request.server.servers.mustHoldLogin(principalOf(request), (request.params as { name: string }).name)
  done()
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  app.addHook('preSerialization', serializeRecords)

  app.get(
    '/servers',
    {
      schema: {
        tags,
        summary: 'List the servers that you may see',
        querystring: PageQuery,
        response: { 200: PageOf(Type.Partial(ServerRecord)) }
      },
      config: { effect: 'read' }
    },
    async (request) => ({
      success: true as const,
      ...page(await app.servers.listToLogIn(principalOf(request)), request.query, ServerRecord, ({ name }) => name)
    })
  )

  app.post(
    '/servers',
    {
      schema: {
        tags,
        summary: 'Add a server',
        description: 'The answer does not wait for the server, which connects in the background.',
        body: NewServer,
        response: { 200: SuccessWithWarnings(ServerRecord) }
      },
      config: { effect: 'change' }
    },
    async (request) => {
      const { name, config } = request.body
      const data = await app.servers.create(principalOf(request), name, config)
      const isDisabled = 'enabled' in config && config.enabled === false
      const message = `Server ${JSON.stringify(name)} was added${isDisabled ? ', disabled' : ' and is connecting'}`
      return succeeded(data, message, app.servers.warnings(name, config as Record<string, unknown>))
    }
  )

  app.post(
    '/servers/batch',
    {
      schema: {
        tags,
        summary: 'Add many servers',
        description:
          'Each entry independently: 200 when all were stored, 207 when some were, 400 when none was. The configuration file of a client ' +
          'is taken as it is: what it writes otherwise is mapped, and what has no effect is named in `warnings`.',
        body: NewServers,
        response: { 200: BatchDone, 207: BatchDone, 400: BatchFailed }
      },
      config: { effect: 'change' }
    },
    async (request, reply) => {
      const { servers, warnings } = serverEntries(request.body)
      const results = await app.servers.createMany(principalOf(request), servers)
      const successCount = results.filter(({ success }) => success).length
      const data = { results, successCount, failureCount: results.length - successCount }
      if (successCount === 0) {
        const message = 'None of the servers could be added'
        return await reply.code(400).send({ success: false as const, data, message, code: 'TH_INVALID_INPUT' })
      }
      reply.code(successCount === results.length ? 200 : 207)
      const message = `${successCount} of ${results.length} servers were added`
      return { success: true as const, data, message, ...(warnings.length > 0 ? { warnings } : {}) }
    }
  )

  app.post(
    '/servers/test',
    {
      schema: {
        tags,
        summary: 'Test a server before it is stored',
        description:
          'Connects once, as the server would be stored, lists its items and ends the connection: the answer tells what it saw, or why ' +
          'it does not connect. A server that wants a login (OAuth) has the status `oauth_required`: none is begun, since it needs the ' +
          'stored server, whose record then shows the address to open. Nothing is stored. The rules for storing a server hold.',
        body: ServerToTest,
        response: { 200: Success(ServerTested) }
      },
      config: { effect: 'change' }
    },
    async (request, reply) => {
      const { name, config } = request.body
      const data = await app.servers.test(principalOf(request), name, config as Record<string, unknown>, signalOf(reply))
      return { success: true as const, data, message: testMessage(data, name) }
    }
  )

  app.get('/servers/:name', {
    schema: { tags, summary: 'One server, with its items', params: ServerName, response: { 200: Success(ServerRecord) } },
    config: { effect: 'read' }
  }, async (request) => ({ success: true as const, data: await app.servers.getToLogIn(principalOf(request), request.params.name) }))

  app.put(
    '/servers/:name',
    {
      schema: {
        tags,
        summary: "Replace a server's config",
        description:
          'Owner, visibility, `enabled` and overrides stay unless the new config has them. ' +
          'A masked secret that is sent back keeps the stored one.',
        params: ServerName,
        body: ServerUpdate,
        response: { 200: SuccessWithWarnings(ServerRecord) }
      },
      config: { effect: 'change' },
      onRequest: mustManage
    },
    async (request) => {
      const { config, newName } = request.body
      const data = await app.servers.update(principalOf(request), request.params.name, config, newName)
      const warnings = app.servers.warnings(data.name, config as Record<string, unknown>)
      return succeeded(data, 'The server was updated', warnings)
    }
  )

  app.delete('/servers/:name', {
    schema: { tags, summary: 'Remove a server', params: ServerName, response: { 200: Done } },
    config: { effect: 'change' },
    onRequest: mustManage
  }, async (request) => {
    await app.servers.remove(principalOf(request), request.params.name)
    return { success: true as const, message: 'The server was removed' }
  })

  app.post('/servers/:name/toggle', {
    schema: { tags, summary: 'Enable or disable a server', params: ServerName, body: Toggle, response: { 200: Success(ServerRecord) } },
    config: { effect: 'change' },
    onRequest: mustManage
  }, async (request) => {
    const { enabled } = request.body
    return {
      success: true as const,
      data: await app.servers.toggle(principalOf(request), request.params.name, enabled),
      message: enabled ? 'The server was enabled' : 'The server was disabled'
    }
  })

  app.post('/servers/:name/reload', {
    schema: { tags, summary: 'Reconnect a server', params: ServerName, response: { 200: Success(ServerRecord) } },
    config: { effect: 'change' },
    onRequest: mustManage
  }, async (request) => {
    const data = await app.servers.reload(principalOf(request), request.params.name)
    const message = data.status === 'disabled' ? 'The server is disabled: enable it to connect it' : 'The server is reconnecting'
    return { success: true as const, data, message }
  })

  app.delete('/servers/:name/oauth', {
    schema: {
      tags,
      summary: 'Log out at a server',
      description: 'Ends the login that the gateway uses there: the shared one, or with `isolation: user` your own.',
      params: ServerName,
      response: { 200: Done }
    },
    config: { effect: 'change' },
    onRequest: mustHoldLogin
  }, async (request) => {
    const { name } = request.params
    const existed = await app.servers.logOut(principalOf(request), name)
    if (existed) app.audit.note(authorOf(request), { entity: 'login', name, before: { server: name } })
    return { success: true as const, message: existed ? 'The login was ended' : 'There was no login' }
  })
}
export default routes
