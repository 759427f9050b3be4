CREATE TABLE "commits" (
	"version" bigint PRIMARY KEY NOT NULL,
	"id" uuid NOT NULL,
	"touched" jsonb
);
--> statement-breakpoint
CREATE TABLE "counters" (
	"key" text PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "oauth_clients" (
	"key" text PRIMARY KEY NOT NULL,
	"origin" text NOT NULL,
	"data" text NOT NULL,
	"unknown" jsonb,
	"sealed" text,
	"last_used" timestamp with time zone,
	"idle_since" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "records" (
	"id" text PRIMARY KEY NOT NULL,
	"collection" text NOT NULL,
	"version" text NOT NULL,
	"value" text,
	"data" jsonb,
	"sealed" text,
	"owner" text,
	"labels" text[] NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"changed" timestamp with time zone NOT NULL,
	"expires" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "revision" (
	"id" integer PRIMARY KEY DEFAULT 1 NOT NULL,
	"version" bigint NOT NULL,
	"head" uuid NOT NULL,
	CONSTRAINT "revision_is_one_row" CHECK ("revision"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE "vectors" (
	"collection" text NOT NULL,
	"key" text NOT NULL,
	"hash" text NOT NULL,
	"embedding" real[] NOT NULL,
	"used_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "vectors_collection_key_pk" PRIMARY KEY("collection","key")
);
--> statement-breakpoint
CREATE TABLE "activities" (
	"id" uuid PRIMARY KEY NOT NULL,
	"timestamp" bigint NOT NULL,
	"server" text NOT NULL,
	"tool" text NOT NULL,
	"status" text NOT NULL,
	"group" text,
	"username" text,
	"key_id" text,
	"key_name" text,
	"duration" double precision NOT NULL,
	"source_ip" text,
	"client_id" text,
	"client_name" text,
	"data" jsonb,
	"sealed" text,
	"sealed_by" text
);
--> statement-breakpoint
CREATE TABLE "activity_hours" (
	"hour" bigint NOT NULL,
	"calls" bigint NOT NULL,
	"duration" double precision NOT NULL,
	"status" text NOT NULL,
	"server" text NOT NULL,
	"tool" text NOT NULL,
	"group" text,
	"username" text,
	"key_id" text,
	"key_name" text,
	"hash" text NOT NULL,
	CONSTRAINT "activity_hours_hour_hash_pk" PRIMARY KEY("hour","hash")
);
--> statement-breakpoint
CREATE TABLE "audit" (
	"number" bigserial PRIMARY KEY NOT NULL,
	"id" uuid NOT NULL,
	"timestamp" bigint NOT NULL,
	"username" text NOT NULL,
	"action" text NOT NULL,
	"entity" text NOT NULL,
	"name" text NOT NULL,
	"data" jsonb NOT NULL,
	"sealed" text,
	CONSTRAINT "audit_id_unique" UNIQUE("id")
);
--> statement-breakpoint
CREATE TABLE "social_accounts" (
	"id" text PRIMARY KEY NOT NULL,
	"provider_id" text NOT NULL,
	"account_id" text NOT NULL,
	"user_id" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_accounts_identity" UNIQUE("provider_id","account_id")
);
--> statement-breakpoint
CREATE TABLE "social_identities" (
	"hash" text PRIMARY KEY NOT NULL,
	"provider" text NOT NULL,
	"username" text NOT NULL,
	"subject" text NOT NULL,
	"created" boolean NOT NULL,
	"verified" boolean NOT NULL,
	"bound" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "social_sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"token" text NOT NULL,
	"user_id" text NOT NULL,
	"username" text NOT NULL,
	"mark" text NOT NULL,
	"ip_address" text,
	"user_agent" text,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_sessions_token_unique" UNIQUE("token")
);
--> statement-breakpoint
CREATE TABLE "social_users" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"email" text NOT NULL,
	"email_verified" boolean NOT NULL,
	"image" text,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "social_users_email_unique" UNIQUE("email")
);
--> statement-breakpoint
CREATE TABLE "servers" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"name" text NOT NULL,
	CONSTRAINT "servers_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "groups" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"alias" text,
	CONSTRAINT "groups_key_unique" UNIQUE("key"),
	CONSTRAINT "groups_alias_unique" UNIQUE("alias")
);
--> statement-breakpoint
CREATE TABLE "users" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "users_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "bearer_keys" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"alias" text,
	CONSTRAINT "bearer_keys_key_unique" UNIQUE("key"),
	CONSTRAINT "bearer_keys_alias_unique" UNIQUE("alias")
);
--> statement-breakpoint
CREATE TABLE "prompts" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "prompts_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "resources" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "resources_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "system_config" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "system_config_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "sections" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	"name" text NOT NULL,
	CONSTRAINT "sections_key_unique" UNIQUE("key")
);
--> statement-breakpoint
ALTER TABLE "social_accounts" ADD CONSTRAINT "social_accounts_user_id_social_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."social_users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "social_sessions" ADD CONSTRAINT "social_sessions_user_id_social_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."social_users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "counters_expires" ON "counters" USING btree ("expires");--> statement-breakpoint
CREATE INDEX "oauth_clients_idle" ON "oauth_clients" USING btree ("idle_since") WHERE "oauth_clients"."origin" = 'registered';--> statement-breakpoint
CREATE INDEX "records_at" ON "records" USING btree ("collection","at");--> statement-breakpoint
CREATE INDEX "records_owner" ON "records" USING btree ("collection","owner","at");--> statement-breakpoint
CREATE INDEX "records_changed" ON "records" USING btree ("collection","changed");--> statement-breakpoint
CREATE INDEX "records_expires" ON "records" USING btree ("collection","expires");--> statement-breakpoint
CREATE INDEX "records_labels" ON "records" USING gin ("labels");--> statement-breakpoint
CREATE INDEX "activities_timestamp" ON "activities" USING btree ("timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_server" ON "activities" USING btree ("server","timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_tool" ON "activities" USING btree ("tool","timestamp","id","server");--> statement-breakpoint
CREATE INDEX "activities_errors" ON "activities" USING btree ("timestamp","id") WHERE "activities"."status" = 'error';--> statement-breakpoint
CREATE INDEX "activities_errors_server" ON "activities" USING btree ("server","timestamp","id") WHERE "activities"."status" = 'error';--> statement-breakpoint
CREATE INDEX "activities_errors_tool" ON "activities" USING btree ("tool","timestamp","id") WHERE "activities"."status" = 'error';--> statement-breakpoint
CREATE INDEX "activities_errors_username" ON "activities" USING btree ("username","timestamp","id") WHERE "activities"."status" = 'error';--> statement-breakpoint
CREATE INDEX "activities_errors_key_name" ON "activities" USING btree ("key_name","timestamp","id") WHERE "activities"."status" = 'error';--> statement-breakpoint
CREATE INDEX "activities_group" ON "activities" USING btree ("group","timestamp","id") WHERE "activities"."group" is not null;--> statement-breakpoint
CREATE INDEX "activities_username" ON "activities" USING btree ("username","timestamp","id");--> statement-breakpoint
CREATE INDEX "activities_key" ON "activities" USING btree ("key_id","timestamp","id") WHERE "activities"."key_id" is not null;--> statement-breakpoint
CREATE INDEX "activities_key_name" ON "activities" USING btree ("key_name","timestamp","id") WHERE "activities"."key_name" is not null;--> statement-breakpoint
CREATE INDEX "activities_sealed_by" ON "activities" USING btree ("sealed_by") WHERE "activities"."sealed_by" is not null;--> statement-breakpoint
CREATE INDEX "audit_username" ON "audit" USING btree ("username","number");--> statement-breakpoint
CREATE INDEX "audit_entity" ON "audit" USING btree ("entity","number");--> statement-breakpoint
CREATE INDEX "social_accounts_user" ON "social_accounts" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "social_identities_account" ON "social_identities" USING btree ("username","subject");--> statement-breakpoint
CREATE INDEX "social_sessions_user" ON "social_sessions" USING btree ("user_id","created_at");--> statement-breakpoint
CREATE INDEX "social_sessions_expires" ON "social_sessions" USING btree ("expires_at");