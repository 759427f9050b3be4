import { Type } from '@sinclair/typebox'

/** A task that a server is running. */
export const RunningTask = Type.Object({
  id: Type.String(),
  server: Type.String(),
  tool: Type.String({ description: 'The tool\'s own name' }),
  username: Type.Optional(Type.String({ description: 'The user who started it; absent for callers without a user' })),
  keyName: Type.Optional(Type.String({ description: 'The name of the bearer key that started it' })),
  route: Type.String({ description: 'The path of the MCP endpoint on which it was started' }),
  state: Type.String({ description: 'The state last reported by the server: `working` or `input_required`' }),
  startedAt: Type.String({ format: 'date-time' }),
  updatedAt: Type.String({ format: 'date-time', description: 'When the server last reported a change of its state' }),
  ttl: Type.Optional(Type.Number({ description: 'How long the server keeps it, in ms; absent if there is no limit' }))
}, {
  examples: [{
    id: 'mJ6qkq0cA3xqj0rG9o3V4sY1bF5b6w2m8oZb3r1Q7dA',
    server: 'builds',
    tool: 'run_build',
    username: 'alice',
    keyName: 'laptop',
    route: '/mcp',
    state: 'working',
    startedAt: '2026-11-23T09:00:00.000Z',
    updatedAt: '2026-11-23T09:00:00.000Z',
    ttl: 3_600_000
  }]
})
export const TaskParams = Type.Object({ id: Type.String({ maxLength: 100 }) })
