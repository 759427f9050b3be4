import { Type } from '@sinclair/typebox'

export const HealthResponse = Type.Object({
  status: Type.String({
    description: '`ok` while the process serves requests; `starting` while it waits for its database'
  }),
  timestamp: Type.String({ description: 'ISO 8601' }),
  uptime: Type.Number({ description: 'Seconds' }),
  servers: Type.Object({ total: Type.Integer(), connected: Type.Integer() })
}, {
  examples: [
    { status: 'ok', timestamp: '2026-11-20T09:00:00.000Z', uptime: 86_400.5, servers: { total: 4, connected: 3 } }
  ]
})

export const ConfigResponse = Type.Object({
  success: Type.Literal(true),
  data: Type.Object({ basePath: Type.String(), version: Type.String(), name: Type.String() })
}, { examples: [{ success: true, data: { basePath: '/hub', version: '1.0.0', name: 'tool-hub' } }] })

export const PublicConfigResponse = Type.Object(
  {
    success: Type.Literal(true),
    data: Type.Object({
      skipAuth: Type.Boolean(),
      permissions: Type.Object({}, {
        additionalProperties: true,
        description: 'The permissions of guests, if skipAuth is on'
      }),
      socialAuth: Type.Object(
        { enabled: Type.Boolean(), basePath: Type.String(), providers: Type.Array(Type.String()) }
      )
    })
  },
  {
    examples: [
      {
        success: true,
        data: {
          skipAuth: false, permissions: {}, socialAuth: { enabled: false, basePath: '/api/auth/better', providers: [] }
        }
      }
    ]
  }
)

export const LivenessResponse = Type.Object({ status: Type.String() }, { examples: [{ status: 'ok' }] })

export const MetricsResponse = {
  description: 'Lines with name, labels and value',
  content: { 'text/plain': { schema: Type.String({ examples: ['toolhub_sessions 2\n'] }) } }
}
