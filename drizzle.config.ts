import { defineConfig } from 'drizzle-kit'

/** The configuration of `npm run db:generate`, which generates a migration for changed tables without a database. */
export default defineConfig({ dialect: 'postgresql', schema: './db/postgres/drizzle-kit.ts', out: './db/migrations' })
