// drizzle-kit, which loads this file as CommonJS, reads tables from its exports only. The tables of the entities are
// generated from db/entities.ts, so tables.ts does not export them one by one.
import { settingsTables } from './tables.ts'

export * from './tables.ts'

declare const module: { exports: object }

Object.assign(module.exports, settingsTables)
