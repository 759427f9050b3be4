import { Type } from '@sinclair/typebox'
import { StringEnum } from './string-enum.ts'

/** One line of the log. */
export const LogRecord = Type.Object(
  {
    id: Type.Number({ description: 'A number that grows with each line of this process' }),
    timestamp: Type.Number({ description: 'In ms since 1970' }),
    level: StringEnum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']),
    type: StringEnum(['debug', 'info', 'warn', 'error']),
    source: StringEnum(['main', 'child']),
    message: Type.String(),
    processId: Type.Optional(Type.String({ description: 'The server whose process printed the line' }))
  },
  {
    examples: [
      {
        id: 17,
        timestamp: 1_795_000_000_000,
        level: 'info',
        type: 'info',
        source: 'main',
        message: 'issues: connected'
      }
    ]
  }
)
