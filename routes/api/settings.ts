import { Type } from '@sinclair/typebox'
import type { preSerializationAsyncHookHandler } from 'fastify'
import { checkScopes } from '../../plugins/identity/index.ts'
import { listEntityNames, toAuthor } from '../../plugins/settings/index.ts'
import { GroupRecord } from '../../schemas/group-api.ts'
import { ServerRecord } from '../../schemas/server-api.ts'
import { Success } from '../../schemas/answers.ts'
import { StringEnum } from '../../schemas/string-enum.ts'
import type { FastifyPluginAsyncTypebox } from '../typebox.ts'
import { createApiRouter } from './endpoint.ts'
import { requirePrincipal } from './principal.ts'
import { serializeRecords } from './records.ts'

const AnyObject = Type.Object({}, { additionalProperties: true })
/** Creates the schema of an optional boolean query parameter. */
const Flag = (description: string) => Type.Optional(StringEnum(['true', 'false', '1', '0'], { description }))
const isOn = (flag: string | undefined): boolean => flag === 'true' || flag === '1'
const ShownSystemConfig = Type.Object(
  {},
  {
    additionalProperties: true,
    examples: [
      { routing: { enableGlobalRoute: true, jsonBodyLimit: '1mb' }, nameSeparator: '-' }
    ]
  }
)
const AllSettings = Type.Object({
  servers: Type.Array(ServerRecord),
  // The handler returns a Map, which `serializeRecords` writes as an object.
  mcpServers: Type.Unsafe<object>(
    Type.Record(Type.String(), AnyObject, {
      description: 'The configs of the same servers by name, as in a settings file',
      examples: [
        { issues: { url: 'https://mcp.example.com/mcp', enabled: true, owner: 'admin', visibility: 'public' } }
      ]
    })
  ),
  groups: Type.Array(GroupRecord),
  systemConfig: ShownSystemConfig
})
const ExportedSettings = Type.Object(
  {
    mcpServers: AnyObject,
    groups: Type.Array(GroupRecord),
    systemConfig: Type.Optional(AnyObject),
    ...Object.fromEntries(
      listEntityNames.filter((name) => name !== 'groups').map((name) => [name, Type.Optional(Type.Array(AnyObject))])
    ),
    oauthClients: Type.Optional(Type.Array(AnyObject, { description: 'Only with `includeSecrets`' }))
  },
  {
    examples: [{
      mcpServers: { issues: { url: 'https://mcp.example.com/mcp', headers: { Authorization: '••••1f0c' } } }, groups: []
    }]
  }
)

/** Serialises an export with its envelope. With `download`, the handler itself sets the serializer of the bare file. */
const serializeEnvelope: preSerializationAsyncHookHandler = async function (request, reply, answer) {
  const { download } = request.query as { download?: string }
  return isOn(download) ? answer : await serializeRecords.call(this, request, reply, answer)
}

/** Routes that return all settings that the caller may see, as records and as a settings file. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  createApiRouter(app, 'System').get('/settings', {
    summary: 'Get all settings that you may see',
    description: 'Secrets are masked. Users without admin rights see only those parts of the system configuration ' +
      'that a client needs.',
    data: AllSettings,
    preSerialization: serializeRecords
  }, ({ principal }) =>
    ({
      data: {
        ...app.servers.listWithConfigs(principal),
        groups: app.groups.listWithSelectors(principal),
        systemConfig: app.system.get(principal)
      }
    }))

  app.get('/mcp-settings/export', {
    schema: {
      tags: ['System'],
      summary: 'Export the settings as a file',
      description: 'Contains everything for admins, and for other users what they manage.',
      querystring: Type.Object({
        includeSecrets: Flag('Secrets instead of masks, and the OAuth clients; for admins'),
        download: Flag('Only the file, without an envelope')
      }),
      response: { 200: Type.Union([Success(ExportedSettings), ExportedSettings]) }
    },
    config: { effect: 'read' },
    preSerialization: serializeEnvelope
  }, async (request, reply) => {
    const principal = requirePrincipal(request)
    const includeSecrets = isOn(request.query.includeSecrets)
    // Whoever reads the secrets can change everything, so access tokens need the scope for changes.
    if (includeSecrets) checkScopes(principal)
    const data = await app.export.get(principal, includeSecrets)
    if (includeSecrets) {
      request.log.warn({ user: principal.username }, 'the settings were exported with their secrets')
      app.audit.addChange(toAuthor(principal), { entity: 'export', name: 'settings', after: { includeSecrets } })
    }
    if (!isOn(request.query.download)) return { success: true as const, data }
    reply
      .header('content-disposition', 'attachment; filename="mcp_settings.json"')
      .type('application/json')
      .serializer((value: unknown) => app.export.toText(value as typeof data))
    return data
  })
}
export default routes
