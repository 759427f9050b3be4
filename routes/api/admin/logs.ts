import { Type } from '@sinclair/typebox'
import { toAuthor } from '../../../plugins/settings/index.ts'
import { LogRecord } from '../../../schemas/logs.ts'
import type { FastifyPluginAsyncTypebox } from '../../typebox.ts'
import { createApiRouter } from '../endpoint.ts'
import { requirePrincipal } from '../principal.ts'

const LogStream = {
  description: 'The stream of log lines',
  content: { 'text/event-stream': { schema: Type.String({ examples: ['data: {"type":"clear"}\n\n'] }) } }
}

/** Routes that list, stream and clear the log. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  const api = createApiRouter(app, 'Logs')

  api.get('/logs', {
    summary: 'List the newest lines of the log',
    description: 'Up to 5,000 lines of this process and of the output of server processes, oldest first, with ' +
      'secrets masked. A server that prints a lot displaces its own lines.',
    data: Type.Array(LogRecord)
  }, () => ({ data: app.logs.list() }))

  api.delete('/logs', { summary: 'Clear the log' }, ({ principal, request }) => {
    const author = toAuthor(principal)
    request.log.info(`${author.username}: cleared the log that admins read`)
    app.audit.addChange(author, { entity: 'logs', name: 'logs', before: {} })
    app.logs.clear()
    return { message: 'The log was cleared' }
  })

  app.get('/logs/stream', {
    schema: {
      tags: ['Logs'],
      summary: 'Stream the log',
      description:
        'Server-sent events without names: `{"type":"initial","logs":[…]}`, then `{"type":"log","log":{…}}` for each ' +
        'line, and `{"type":"clear"}`. Comments keep the connection open. A client that stops reading is disconnected.',
      response: { 200: LogStream }
    },
    exposeHeadRoute: false,
    config: { effect: 'read' }
  }, (request, reply) => {
    app.streamLogs(request, reply, requirePrincipal(request))
    reply.hijack()
  })
}
export default routes
