"""SQL, the durable truth: tables and migrations, and one module per thing that is stored."""
