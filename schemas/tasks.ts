import { Type } from '@sinclair/typebox'

/** A task that runs at a server. */
export const RunningTask = Type.Object({
  id: Type.String(),
  server: Type.String(),
  tool: Type.String({ description: 'By its own name' }),
  username: Type.Optional(Type.String({ description: 'The user who began it; absent for callers without a user' })),
  keyName: Type.Optional(Type.String({ description: 'The name of the bearer key that began it' })),
  route: Type.String({ description: 'The path of the MCP endpoint on which it was begun' }),
  state: Type.String({ description: 'As the server told it last: `working` or `input_required`' }),
  startedAt: Type.String({ format: 'date-time' }),
  updatedAt: Type.String({ format: 'date-time', description: 'When a change of its state was heard last' }),
  ttl: Type.Optional(Type.Number({ description: 'How long the server keeps it, in ms; absent: without limit' }))
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
export const TaskId = Type.Object({ id: Type.String({ maxLength: 100 }) })
