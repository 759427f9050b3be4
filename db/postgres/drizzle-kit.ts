// drizzle-kit looks for tables among the exports of a file, which it loads as CommonJS. The tables of the entities are
// made from db/entities.ts, and so are no exports of their own.
import { settingsTables } from './tables.ts'

export * from './tables.ts'

declare const module: { exports: object }

Object.assign(module.exports, settingsTables)
