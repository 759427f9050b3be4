import { Type } from '@sinclair/typebox'

export const Health = Type.Object({
  status: Type.String({ description: '`ok` for as long as the process serves; `starting` while it waits for its database' }),
  timestamp: Type.String({ description: 'ISO 8601' }),
  uptime: Type.Number({ description: 'Seconds' }),
  servers: Type.Object({ total: Type.Integer(), connected: Type.Integer() })
})

export const Config = Type.Object({
  success: Type.Literal(true),
  data: Type.Object({ basePath: Type.String(), version: Type.String(), name: Type.String() })
})

export const PublicConfig = Type.Object({
  success: Type.Literal(true),
  data: Type.Object({
    skipAuth: Type.Boolean(),
    permissions: Type.Object({}, { additionalProperties: true, description: 'The guest\'s, when skipAuth is on' }),
    socialAuth: Type.Object({ enabled: Type.Boolean(), basePath: Type.String(), providers: Type.Array(Type.String()) })
  })
})

export const Liveness = Type.Object({ status: Type.String() })
